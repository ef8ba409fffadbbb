"""The form that decides."""

import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django import forms
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from approvals_app.argument_rows import argument_rows
from approvals_app.models import Decision, Interrupt
from dexweb.engine.errors import InvalidArguments


@dataclass
class IncompleteDecision(InvalidArguments):
    """What was sent does not name a verdict on what was shown."""

    code = "invalid_decision"
    status = 400
    title = "This decision cannot be read"

    @property
    def message(self) -> str:
        return "The form was incomplete or damaged, so nothing was decided. Decide again below."


@dataclass
class NotShownInFull(InvalidArguments):
    """Some value was folded, and nothing says that the approver saw the whole of it."""

    code = "not_shown_in_full"
    status = 400
    title = "Some of it is still folded"

    @property
    def message(self) -> str:
        return (
            "Unfold every long value, or tick “I was shown it in full”, and approve then."
            " Nothing was decided."
        )


class DecisionForm(forms.Form):
    """Names exactly what was shown. Who decides is never in it: that is the signed-in user."""

    verdict = forms.ChoiceField(choices=Decision.Verdict.choices)
    revision = forms.IntegerField(min_value=1, max_value=2**31 - 1)
    args_hash = forms.RegexField(r"\A[0-9a-f]{64}\Z")
    reason = forms.CharField(required=False)
    args = forms.CharField(required=False, strip=False)
    shown = forms.BooleanField(required=False)
    request_id = forms.UUIDField()

    @classmethod
    def offered(cls, interrupt: Interrupt, reason: str = "") -> "DecisionForm":
        """An unbound form for what ``interrupt`` asks now, with a request id of its own."""
        return cls(
            initial={
                "revision": interrupt.revision,
                "args_hash": interrupt.args_hash,
                "reason": reason,
                "request_id": str(uuid.uuid4()),
            }
        )

    def arguments(self) -> dict[str, Any]:
        """What `decisions.decide` takes."""
        taken = {name: value for name, value in self.cleaned_data.items() if name != "shown"}
        return {**taken, "request_id": str(taken["request_id"])}

    def check_shown(self, interrupt: Interrupt) -> None:
        """Raises NotShownInFull for an approval of what was, or may have been, still folded."""
        approving = self.cleaned_data["verdict"] == Decision.Verdict.APPROVE
        if approving and not self.cleaned_data["shown"] and folded(interrupt):
            raise NotShownInFull()


def folded(interrupt: Interrupt) -> bool:
    """Whether the page folds any value of what is asked for."""
    return any(row.long for row in argument_rows(interrupt.args))


class EditForm(forms.Form):
    """Edited arguments to be looked at before they are approved."""

    revision = forms.IntegerField(min_value=1, max_value=2**31 - 1)
    args_hash = forms.RegexField(r"\A[0-9a-f]{64}\Z")
    args = forms.CharField(strip=False)


class HoldForm(forms.Form):
    request_id = forms.UUIDField()


class ExtendForm(forms.Form):
    """A new deadline: a moment that was offered, or one that was typed, in the site's time zone."""

    moment = forms.CharField(required=False)
    until = forms.CharField(required=False)
    request_id = forms.UUIDField()

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        given = values.get("moment") or values.get("until") or ""
        values["at"] = _moment(given)
        if values["at"] is None:
            self.add_error("until", "Choose a moment.")
        return values


def _moment(text: str) -> datetime | None:
    try:
        at = parse_datetime(text)
        return timezone.make_aware(at) if at and timezone.is_naive(at) else at
    except (ValueError, OverflowError):
        return None
