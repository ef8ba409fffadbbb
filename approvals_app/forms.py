"""The form that decides."""

import uuid
from dataclasses import dataclass
from typing import Any

from django import forms

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


class DecisionForm(forms.Form):
    """Names exactly what was shown. Who decides is never in it: that is the signed-in user."""

    verdict = forms.ChoiceField(choices=Decision.Verdict.choices)
    revision = forms.IntegerField(min_value=1, max_value=2**31 - 1)
    args_hash = forms.RegexField(r"\A[0-9a-f]{64}\Z")
    reason = forms.CharField(required=False)
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
        return {**self.cleaned_data, "request_id": str(self.cleaned_data["request_id"])}
