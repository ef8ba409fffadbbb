"""What the approval panel shows. The approval's own page and the session page both embed it."""

from typing import Any

from django.utils import timezone

from approvals_app.argument_rows import argument_rows
from approvals_app.forms import DecisionForm
from approvals_app.inbox import standing
from approvals_app.models import Decision, Interrupt
from approvals_app.rules import may_decide
from dexweb.engine.errors import DexwebError
from sessions_app.models import ToolCall

EFFECTS = {
    "read": "Reads only; may be retried",
    "idempotent": "Writes; safe to repeat, so it may be retried",
    "write": "Writes, runs once, never retried",
}


def panel_context(
    user: Any,
    interrupt: Interrupt,
    *,
    refusal: DexwebError | None = None,
    reason: str = "",
    tried: str = "",
    answered: bool = False,
) -> dict[str, Any]:
    """The context of ``approvals/_panel.html``.

    ``reason``: what was typed, to be kept; ``tried``: the verdict that was refused; ``answered``:
    this is the answer to a decision, so the focus goes to it.

    ``interrupt`` comes with its session, agent and starter (`Interrupt.objects.for_list`).
    """
    known = standing(interrupt, user)
    now = timezone.now()
    open_to_decide = (
        interrupt.state == Interrupt.State.PENDING
        and not known.delivering
        and interrupt.deadline > now
    )
    rows = argument_rows(interrupt.args)
    return {
        "interrupt": interrupt,
        "may_decide": may_decide(user, interrupt),
        "open_to_decide": open_to_decide,
        "overdue": interrupt.state == Interrupt.State.PENDING and interrupt.deadline <= now,
        "form": DecisionForm.offered(interrupt, reason),
        "refusal": refusal,
        "tried": tried if tried in Decision.Verdict.values else "",
        "answered": answered or refusal is not None,
        "arguments": rows,
        "odd_arguments": any(row.odd for row in rows),
        "effect_words": EFFECTS.get(interrupt.effect, interrupt.effect),
        "call": known.call,
        "asked_by_step": known.call.model_step if known.call else "",
        "delivering": known.delivering,
        "refused": known.refused if interrupt.state == Interrupt.State.PENDING else None,
        "let_run": _let_run(interrupt),
        "unfinished": _unfinished(interrupt, known.call),
        "can_view_session": user.has_perm("sessions_app.view_session"),
        "version": _version(interrupt, known, open_to_decide),
    }


def _unfinished(interrupt: Interrupt, call: ToolCall | None) -> bool:
    """Whether the call may still run: the panel then waits for what it did."""
    return _let_run(interrupt) and call is not None and not call.outcome


def _let_run(interrupt: Interrupt) -> bool:
    """Whether its end sent the call on to run, which may have refused it."""
    if interrupt.state == Interrupt.State.EXPIRED:
        return interrupt.at_deadline == "approve"
    return interrupt.state in (Interrupt.State.APPROVED, Interrupt.State.INVALIDATED)


def _version(interrupt: Interrupt, known: Any, open_to_decide: bool) -> str:
    """Changes exactly when the panel would look different."""
    call, delivering = known.call, known.delivering
    parts = (
        interrupt.revision,
        interrupt.state,
        interrupt.deadline.timestamp(),
        open_to_decide,
        f"{delivering.pk}:{delivering.state}" if delivering else "",
        known.refused.pk if known.refused else "",
        f"{call.outcome}:{call.attempts}:{bool(call.started_at)}" if call else "",
    )
    return "|".join(map(str, parts))
