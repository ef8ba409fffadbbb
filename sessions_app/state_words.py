"""How it stands, in a word and a hue: the one table for sessions, Steps, calls and interrupts.

Hues are the classes of app.css: act (a person's turn), run, ok, bad, odd (outcome unknown), off.
"""

from typing import Any, NamedTuple


class StateWords(NamedTuple):
    hue: str
    words: str


SESSION = {
    "completed": StateWords("ok", "Completed"),
    "failed": StateWords("bad", "Failed"),
    "canceled": StateWords("off", "Canceled"),
    "terminated": StateWords("off", "Terminated"),
    "timed_out": StateWords("bad", "Timed out"),
}
PHASE = {
    "idle": StateWords("off", "Idle"),
    "thinking": StateWords("run", "Thinking"),
    "acting": StateWords("run", "Acting"),
    "compacting": StateWords("run", "Compacting"),
    "waiting_approval": StateWords("act", "Waits for approval"),
    "waiting_answer": StateWords("act", "Waits for an answer"),
    "waiting_spend": StateWords("act", "Waits for budget"),
    "waiting_timer": StateWords("off", "Waits for a timer"),
}
STEP = {
    "planned": StateWords("off", "Planned"),
    "scheduled": StateWords("off", "Scheduled"),
    "active": StateWords("run", "Running"),
    "waiting": StateWords("off", "Waiting"),
    "completed": StateWords("ok", "Completed"),
    "failed": StateWords("bad", "Failed"),
    "canceled": StateWords("off", "Canceled"),
}
OUTCOME = {
    "completed": StateWords("ok", "Completed"),
    "failed": StateWords("bad", "Failed"),
    "outcome_unknown": StateWords("odd", "Outcome unknown"),
    "rejected": StateWords("bad", "Rejected"),
    "expired": StateWords("off", "Expired"),
    "canceled": StateWords("off", "Canceled"),
    "invalidated": StateWords("bad", "Invalidated"),
}
INTERRUPT = {
    "pending": StateWords("act", "Pending"),
    "approved": StateWords("ok", "Approved"),
    "rejected": StateWords("bad", "Rejected"),
    "expired": StateWords("off", "Expired"),
    "canceled": StateWords("off", "Canceled"),
    "superseded": StateWords("off", "Superseded"),
    "invalidated": StateWords("bad", "Invalidated"),
    "answered": StateWords("ok", "Answered"),
}
PEOPLE_STEPS = {"AwaitToolApproval", "AwaitAnswer", "AwaitSpend"}


def session_words(session: Any) -> StateWords:
    """A running session is told by its phase, an ended one by its status."""
    if session.status == "running" and session.stuck:
        return StateWords("bad", "Stuck")
    table, key = (
        (PHASE, session.phase) if session.status == "running" else (SESSION, session.status)
    )
    return table.get(key) or _plain(key)


def step_words(step: Any) -> StateWords:
    """A Step, by its outcome where it has one; between two tries it is retrying, not running."""
    if step.outcome in OUTCOME and step.status not in ("active", "waiting"):
        return OUTCOME[step.outcome]
    if step.next_attempt_at and step.status in ("active", "scheduled", "planned"):
        return StateWords("run", f"Retrying, attempt {step.attempt}")
    if step.status == "waiting" and step.type in PEOPLE_STEPS:
        return StateWords("act", "Waits for a person")
    return STEP.get(step.status) or _plain(step.status)


def interrupt_words(state: str) -> StateWords:
    return INTERRUPT.get(state) or _plain(state)


def outcome_words(outcome: str) -> StateWords:
    """How a call ended; without an outcome it is still on its way."""
    return OUTCOME.get(outcome) or (_plain(outcome) if outcome else StateWords("run", "Running"))


def _plain(state: str) -> StateWords:
    return StateWords("off", state.replace("_", " ").capitalize() or "Unknown")
