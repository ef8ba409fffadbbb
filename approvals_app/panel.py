"""What the approval panel shows. The approval's own page and the session page both embed it."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.utils import timezone

from approvals_app.argument_diff import changes
from approvals_app.argument_rows import ArgumentRow, argument_rows, pretty
from approvals_app.edit_form import FieldError, Review, edit_fields, field_errors
from approvals_app.forms import DecisionForm
from approvals_app.inbox import standing
from approvals_app.models import Decision, Interrupt
from approvals_app.panel_policy import policy_lines, then_words
from approvals_app.panel_state import HoldShown, VotesShown, extensions, hold_of, votes_shown
from approvals_app.receipt import receipt_of
from approvals_app.rules import Standing, standing_to_decide
from dexweb.engine.errors import DexwebError, FourEyes
from sessions_app.models import ToolCall

EFFECTS = {
    "read": "Reads only; may be retried",
    "idempotent": "Writes; safe to repeat, so it may be retried",
    "write": "Writes, runs once, never retried",
}


@dataclass(frozen=True)
class Sure:
    """A call that takes a second step to approve: tool, effect, and its arguments as they will run.

    ``edited``: by whom, in words; "" where they are the agent's own.
    """

    id: str
    tool: str
    effect: str
    arguments: list[ArgumentRow]
    edited: str = ""


def risky(interrupts: Iterable[Interrupt], edited: str = "") -> list[Sure]:
    """Those of high risk, or of one that is not known; ``edited`` is JSON text to run instead."""
    high = (row for row in interrupts if row.risk not in ("low", "medium"))
    return [
        Sure(
            row.pk,
            row.tool,
            EFFECTS.get(row.effect, row.effect),
            argument_rows(edited or row.args),
            "you" if edited else row.edited_by_name,
        )
        for row in high
    ]


@dataclass(frozen=True)
class Typed:
    """What a person has put into the panel, to be kept when it is drawn again.

    ``args``: edited arguments as they were typed; ``review``: those that passed, to be looked at;
    ``tried``: the verdict that was refused.
    """

    reason: str = ""
    tried: str = ""
    shown: bool = False
    args: str = ""
    review: Review | None = None


@dataclass(frozen=True)
class EditShown:
    """The edit form: the JSON in the box, the fields for the script, and what is wrong with it."""

    text: str
    fields: str
    errors: list[FieldError] = field(default_factory=list)
    open: bool = False

    @property
    def errors_json(self) -> str:
        return json.dumps([[error.path, error.words] for error in self.errors])


@dataclass(frozen=True)
class Seen:
    """All that the panel is drawn from, read once."""

    now: datetime
    known: Any
    stands: Standing
    hold: HoldShown
    votes: VotesShown
    open: bool


def panel_context(
    user: Any,
    interrupt: Interrupt,
    *,
    refusal: DexwebError | None = None,
    typed: Typed | None = None,
    answered: bool = False,
) -> dict[str, Any]:
    """The context of ``approvals/_panel.html``.

    ``typed``: what was typed, to be kept; ``answered``: this is the answer to a decision, so the
    focus goes to it.

    ``interrupt`` comes with its session, agent and starter (`Interrupt.objects.for_list`).
    """
    typed = typed or Typed()
    seen = _seen(user, interrupt)
    rows = argument_rows(interrupt.args)
    edits = _edits(seen, interrupt, typed, refusal)
    return {
        "interrupt": interrupt,
        "form": DecisionForm.offered(interrupt, typed.reason),
        "refusal": refusal,
        "tried": typed.tried if typed.tried in Decision.Verdict.values else "",
        "shown": typed.shown,
        "typed_args": typed.args,
        "risky": risky([interrupt], edits["review"].text if edits["review"] else ""),
        "answered": answered or refusal is not None,
        "arguments": rows,
        "folded": sum(row.long for row in rows),
        "odd_arguments": any(row.odd for row in rows),
        "effect_words": EFFECTS.get(interrupt.effect, interrupt.effect),
        "can_view_session": user.has_perm("sessions_app.view_session"),
        **_people(seen, interrupt),
        **_state(seen, interrupt),
        **edits,
        "version": _version(interrupt, seen),
    }


def _seen(user: Any, interrupt: Interrupt) -> Seen:
    now = timezone.now()
    known = standing(interrupt, user)
    pending = interrupt.state == Interrupt.State.PENDING
    return Seen(
        now=now,
        known=known,
        stands=standing_to_decide(user, interrupt),
        hold=hold_of(interrupt, user, now),
        votes=votes_shown(interrupt, user),
        open=pending and not known.delivering and interrupt.deadline > now,
    )


def _people(seen: Seen, interrupt: Interrupt) -> dict[str, Any]:
    """Who may decide, who is at it, and who has said what."""
    stands = seen.stands
    barred = FourEyes(because=stands.barred_because).message if stands.barred_because else ""
    return {
        "may_decide": stands.may,
        "may_vote": stands.may and seen.open and not seen.votes.mine,
        "barred": barred,
        "for_whom": stands.for_whom.get_username() if stands.for_whom else "",
        "hold": seen.hold,
        "votes": seen.votes,
        "reason_needed": _reason_needed(interrupt),
    }


def _reason_needed(interrupt: Interrupt) -> str:
    to_reject = interrupt.policy.get("reason_on_reject", True)
    to_approve = interrupt.policy.get("reason_on_approve", False)
    if to_reject and to_approve:
        return "needed"
    if to_reject:
        return "needed to reject"
    return "needed to approve" if to_approve else "if you like"


def _state(seen: Seen, interrupt: Interrupt) -> dict[str, Any]:
    """How it stands, what happens next, and what came of it."""
    known = seen.known
    pending = interrupt.state == Interrupt.State.PENDING
    return {
        "open_to_decide": seen.open,
        "overdue": pending and interrupt.deadline <= seen.now,
        "then": then_words(interrupt),
        "policy_lines": policy_lines(interrupt),
        "extensions": extensions(interrupt) if seen.open else [],
        "zone": timezone.get_current_timezone_name(),
        "call": known.call,
        "asked_by_step": known.call.model_step if known.call else "",
        "delivering": known.delivering,
        "refused": known.refused if pending else None,
        "let_run": _let_run(interrupt),
        "unfinished": _unfinished(interrupt, known.call),
        "receipt": None if pending else receipt_of(interrupt),
    }


def _edits(
    seen: Seen, interrupt: Interrupt, typed: Typed, refusal: DexwebError | None
) -> dict[str, Any]:
    """What somebody changed before, and the form to change it now."""
    schema = seen.known.call.schema if seen.known.call else {}
    may = bool(interrupt.policy.get("editable") and schema)
    edit = None
    if may and seen.open and seen.stands.may and not seen.votes.mine:
        errors = field_errors(refusal) if typed.args else []
        edit = EditShown(
            text=typed.args or pretty(interrupt.args),
            fields=json.dumps(edit_fields(schema)),
            errors=errors,
            open=bool(typed.args) and typed.review is None,
        )
    original = interrupt.original_args
    return {
        "edit": edit,
        "review": typed.review if edit else None,
        "edited": changes(original, interrupt.args) if original else [],
    }


def _unfinished(interrupt: Interrupt, call: ToolCall | None) -> bool:
    """Whether the call may still run: the panel then waits for what it did."""
    return _let_run(interrupt) and call is not None and not call.outcome


def _let_run(interrupt: Interrupt) -> bool:
    """Whether its end sent the call on to run, which may have refused it."""
    if interrupt.state == Interrupt.State.EXPIRED:
        return interrupt.at_deadline == "approve"
    return interrupt.state in (Interrupt.State.APPROVED, Interrupt.State.INVALIDATED)


def _version(interrupt: Interrupt, seen: Seen) -> str:
    """Changes exactly when the panel would look different."""
    call, delivering = seen.known.call, seen.known.delivering
    parts = (
        interrupt.revision,
        interrupt.state,
        interrupt.deadline.timestamp(),
        interrupt.level,
        seen.open,
        seen.stands.may,
        f"{seen.hold.state}:{seen.hold.by}:{seen.hold.until}",
        seen.votes.count,
        f"{delivering.pk}:{delivering.state}:{delivering.refusal.get('code')}"
        if delivering
        else "",
        seen.known.refused.pk if seen.known.refused else "",
        f"{call.outcome}:{call.attempts}:{bool(call.started_at)}" if call else "",
    )
    return "|".join(map(str, parts))
