"""Facts to rows and events: the only writer of session rows.

Everything here runs in one transaction under the session's row lock, so rows and the events that
speak of them commit together, and `AgentEvent.seq` has no gaps. Recording the same fact again
changes nothing: the Flow's facts carry numbers, a Step's reports are judged by the row's state.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone

from approvals_app.models import Interrupt
from approvals_app.projection import INTERRUPT_HANDLERS, close_interrupt
from sessions_app.edit_words import edit_words
from sessions_app.flow import fact, rules
from sessions_app.message_facts import MESSAGE_HANDLERS, consumed
from sessions_app.models import Agent, Session, Step, ToolCall, Turn
from sessions_app.spend.facts import SPEND_HANDLERS
from sessions_app.standing import standing, user_of
from sessions_app.stream.append import append, write

Bodies = Any


class UnknownSession(Exception):
    """A report for a session that has no row and does not begin with its start."""


@contextmanager
def locked(session_id: str) -> Iterator[Session]:
    """The session row, locked until the transaction ends, and saved if its body returns."""
    with transaction.atomic():
        try:
            session = Session.objects.select_for_update().get(pk=session_id)
        except Session.DoesNotExist as error:
            raise UnknownSession(session_id) from error
        yield session
        write(session)


def record(session_id: str, facts: Sequence[fact.Fact]) -> int:
    """Record those of ``facts`` that are new, in order. Returns the number of the newest recorded."""
    with recording(session_id, facts) as session:
        return session.last_fact


@contextmanager
def recording(session_id: str, facts: Sequence[fact.Fact]) -> Iterator[Session]:
    """As `locked`, with ``facts`` recorded first; they make the session's row if they begin it."""
    first = facts[0] if facts else None
    if first is not None and isinstance(first.body, fact.SessionStarted):
        ensure_session(session_id, first.body, datetime.fromisoformat(first.at))
    with locked(session_id) as session:
        apply(session, facts)
        yield session


def apply(session: Session, facts: Sequence[fact.Fact]) -> None:
    """Record what is new of ``facts``; the caller holds the session's lock.

    A closed session takes none: what a terminated Flow had still to tell is not news any more.
    """
    if not session.open:
        return
    know_steps(session, facts)
    for told in facts:
        if told.n != session.last_fact + 1:
            continue
        at = datetime.fromisoformat(told.at)
        HANDLERS[type(told.body)](session, told.body, at)
        session.last_fact = told.n
        session.stuck = ""
        session.updated_at = timezone.now()


def know_steps(session: Session, facts: Sequence[fact.Fact]) -> None:
    """Read the Steps that the new of ``facts`` speak of, all at once."""
    changes = (told.body for told in facts if told.n > session.last_fact)
    ids = {body.step_id for body in changes if isinstance(body, fact.StepChanged)}
    if ids:
        found = {step.step_id: step for step in session.steps.filter(step_id__in=ids)}
        session.known_steps |= {step_id: found.get(step_id) for step_id in ids}


def ensure_session(session_id: str, started: fact.SessionStarted, at: datetime) -> None:
    """Make the row of a session, once, whoever comes first: the request that starts it or its Flow."""
    Session.objects.get_or_create(
        pk=session_id,
        defaults={
            "agent": Agent.objects.get(name=started.agent),
            "title": started.title,
            "labels": started.labels,
            "limits": asdict(started.limits) if started.limits else {},
            "started_by_id": user_of(started.started_by),
            "parent_id": started.parent or None,
            # There is a first message, which no worker has taken yet.
            "phase": Session.Phase.THINKING,
            "created_at": at,
            "updated_at": at,
        },
    )


def emit_step(session: Session, step: Step, at: datetime) -> None:
    append(
        session,
        "step.changed",
        {
            "step_id": step.step_id,
            "type": step.type,
            "status": step.status,
            "outcome": step.outcome,
            "attempt": step.attempt,
            "turn": step.turn,
            "tool": step.tool,
            "call_id": step.call_id,
            "causes": step.causes,
            "detail": step.detail[:500],
            "next_attempt_at": step.next_attempt_at.isoformat() if step.next_attempt_at else None,
            "session": standing(session),
        },
        at,
        step_id=step.step_id,
        attempt=step.attempt,
    )


# The Flow's facts -------------------------------------------------------------------------------


def _session_started(session: Session, body: fact.SessionStarted, at: datetime) -> None:
    session.run_id = body.run_id
    append(
        session,
        "session.started",
        {
            "agent": body.agent,
            "title": body.title,
            "by": body.started_by.name,
            "run_id": body.run_id,
            **({"parent": body.parent} if body.parent else {}),
        },
        at,
    )


def _session_continued(session: Session, body: fact.SessionContinued, at: datetime) -> None:
    session.run_id = body.run_id
    session.history_events = session.history_bytes = 0
    append(
        session,
        "session.continued",
        {"run_id": body.run_id, "previous_run": body.previous_run, "session": standing(session)},
        at,
    )


def _session_closed(session: Session, body: fact.SessionClosed, at: datetime) -> None:
    close(session, body.status, body.reason, body.by.name if body.by else "", at)


def close(session: Session, status: str, reason: str, by: str, at: datetime) -> None:
    """End the session's rows: what was open is canceled. Nothing happens to a closed one."""
    if not session.open:
        return
    session.status = status
    session.phase = Session.Phase.IDLE
    session.closed_at = at
    session.close_reason = reason
    session.stuck = ""
    for interrupt in session.interrupts.filter(state=Interrupt.State.PENDING):
        close_interrupt(session, interrupt, "canceled", None, "The session ended.", at)
    for row in session.steps.filter(status__in=["planned", "scheduled", "active", "waiting"]):
        step = session.known_steps.get(row.step_id) or row
        step.status, step.ended_at = Step.Status.CANCELED, at
        step.save(update_fields=["status", "ended_at"])
        emit_step(session, step, at)
    for call in session.calls.filter(outcome=""):
        outcome, words = _left_open(call)
        end_call(session, call, "", outcome, words, at)
    session.turns.filter(state="running").update(state="canceled", ended_at=at)
    append(
        session,
        "session.closed",
        {"status": status, "reason": reason, "by": by, "session": standing(session)},
        at,
    )


def tell_stuck(session: Session, why: str, at: datetime) -> None:
    """No worker can go on with the session, or "" for one can; a closed one is never stuck."""
    if not session.open or session.stuck == why:
        return
    session.stuck, session.updated_at = why, at
    if why:
        append(session, "session.stuck", {"reason": why, "session": standing(session)}, at)


def _left_open(call: ToolCall) -> tuple[str, str]:
    """(outcome, words) of a call that has none when its session ends."""
    said = rules.session_ended_words(call.tool)
    if not call.begun_attempt:
        return ToolCall.Outcome.CANCELED, said
    return rules.given_up(call.effect, call.tool, "the session was ended while it ran", said)


def _phase_changed(session: Session, body: fact.PhaseChanged, at: datetime) -> None:
    session.phase = body.phase


def _turn_started(session: Session, body: fact.TurnStarted, at: datetime) -> None:
    session.turn = body.turn
    session.turn_model_calls = 0
    session.known_turn = Turn.objects.create(
        session=session, number=body.turn, changes=session.settings, started_at=at
    )
    consumed(session, body.message_id, body.turn, "", at)
    append(session, "turn.started", {"turn": body.turn, "session": standing(session)}, at)


def _turn_ended(session: Session, body: fact.TurnEnded, at: datetime) -> None:
    if body.history_events:
        session.history_events, session.history_bytes = body.history_events, body.history_bytes
    session.turns.filter(number=body.turn).update(state=body.state, detail=body.reason, ended_at=at)
    for call in session.calls.filter(turn=body.turn, outcome=""):
        # Asked for by an answer that came just as the turn was canceled: nobody will run them.
        end_call(session, call, "", "canceled", rules.canceled_words(call.tool), at)
    by = body.by.name if body.by else ""
    append(
        session,
        "turn.canceled" if body.state == "canceled" else "turn.completed",
        {
            "turn": body.turn,
            "state": body.state,
            "reason": body.reason,
            "by": by,
            "session": standing(session),
        },
        at,
    )


def _step_changed(session: Session, body: fact.StepChanged, at: datetime) -> None:
    step = session.known_steps.get(body.step_id) or Step(
        session=session,
        step_id=body.step_id,
        type=body.type,
        turn=body.turn,
        position=body.position,
        call_id=body.call_id,
        tool=body.tool,
    )
    if step.ended_at and body.outcome == "retrying":
        # An attempt that was given up has come to its end all the same; the next one finds that.
        return
    if body.type == "RunModel" and body.status in ("failed", "canceled"):
        _close_unheard(session, body, at)
    step.status = body.status
    step.causes = body.causes
    step.attempt = body.attempt
    step.outcome = body.outcome or step.outcome
    step.detail = body.detail or step.detail
    step.next_attempt_at = (
        datetime.fromisoformat(body.next_attempt_at) if body.next_attempt_at else None
    )
    if body.status == "scheduled":
        step.scheduled_at = step.scheduled_at or at
    if body.status in ("waiting", "completed", "failed", "canceled") and step.started_at is None:
        step.started_at = None if body.status == "canceled" else at
    if body.status in ("completed", "failed", "canceled"):
        step.ended_at = at
    step.save()
    session.known_steps[step.step_id] = step
    emit_step(session, step, at)


def _close_unheard(session: Session, body: fact.StepChanged, at: datetime) -> None:
    """Calls of a model's answer that the Flow never learned of: nobody will run them."""
    for call in session.calls.filter(model_step=body.step_id, outcome=""):
        end_call(session, call, "", "canceled", rules.canceled_words(call.tool), at)


def _call_closed(session: Session, body: fact.CallClosed, at: datetime) -> None:
    call = session.calls.get(call_id=body.call_id)
    outcome, words = body.outcome, body.words
    if outcome == ToolCall.Outcome.CANCELED and call.begun_attempt:
        # The Flow's cancel may have met the news of an attempt; the rows know that it began.
        outcome, words = rules.canceled_after(call.effect, call.tool)
    end_call(session, call, body.step_id, outcome, words, at, body.result)


def _timer_set(session: Session, body: fact.TimerSet, at: datetime) -> None:
    payload = {"call_id": body.call_id, "until": body.until, "session": standing(session)}
    append(session, "timer.set", payload, at, step_id=body.step_id)


def _timer_fired(session: Session, body: fact.TimerFired, at: datetime) -> None:
    payload: dict[str, Any] = {"call_id": body.call_id, "session": standing(session)}
    if body.skipped_by:
        payload["skipped_by"] = body.skipped_by.name
    append(session, "timer.fired", payload, at, step_id=body.step_id)


def end_call(
    session: Session,
    call: ToolCall,
    step_id: str,
    outcome: str,
    words: str,
    at: datetime,
    result: str = "",
) -> bool:
    """Give ``call`` its outcome, once; a second one is not taken and False is returned."""
    if call.outcome:
        return False
    if call.original_args and call.ran_hash:
        told = edit_words(call.edited_by_name, call.original_args, call.args)
        words = f"{told}\n{words or result}"
    call.outcome, call.words, call.result, call.ended_at = outcome, words, result, at
    call.save()
    if outcome == ToolCall.Outcome.OUTCOME_UNKNOWN:
        session.unknown_outcomes += 1
    if outcome == ToolCall.Outcome.CANCELED:
        # Told by turn.canceled and the Step's own change; the stream has no event of its own for it.
        return True
    append(
        session,
        f"tool.{outcome}",
        {"call_id": call.call_id, "tool": call.tool, "words": words[:2000]},
        at,
        step_id=step_id,
    )
    return True


HANDLERS: dict[type, Callable[[Session, Bodies, datetime], None]] = {
    fact.SessionStarted: _session_started,
    fact.SessionContinued: _session_continued,
    fact.SessionClosed: _session_closed,
    fact.PhaseChanged: _phase_changed,
    fact.TurnStarted: _turn_started,
    fact.TurnEnded: _turn_ended,
    fact.StepChanged: _step_changed,
    fact.CallClosed: _call_closed,
    fact.TimerSet: _timer_set,
    fact.TimerFired: _timer_fired,
    **INTERRUPT_HANDLERS,
    **MESSAGE_HANDLERS,
    **SPEND_HANDLERS,
}
