"""What Steps report of themselves: rows and events in one transaction, through the projection."""

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from django.utils import timezone

from sessions_app.flow.state import StepContext
from sessions_app.llm.stream import ModelReply
from sessions_app.models import AgentEvent, Session, Step, Turn
from sessions_app.projection import emit_step
from sessions_app.stream.append import append

LIVE_ONLY = ("model.delta", "model.reasoning", "tool.progress")


def step_of(session: Session, context: StepContext) -> Step:
    """The Step's row; the caller holds the session's lock."""
    known = session.known_steps.get(context.step_id)
    return known or session.steps.get(step_id=context.step_id)


def turn_of(session: Session, context: StepContext) -> Turn:
    """The Step's turn; the caller holds the session's lock."""
    known = session.known_turn
    if known is not None and known.number == context.turn:
        return known
    turn: Turn = session.turns.get(number=context.turn)
    return turn


def measured(session: Session, context: StepContext) -> None:
    """How far the engine's history of this run has come, which every Step is told."""
    if context.history_events:
        session.history_events = context.history_events
        session.history_bytes = context.history_bytes


def started(session: Session, step: Step, attempt: int) -> None:
    """The Step is active now, in this attempt."""
    now = timezone.now()
    step.status, step.attempt = Step.Status.ACTIVE, attempt
    step.started_at = step.started_at or now
    step.next_attempt_at = None
    step.outcome = step.detail = ""
    step.save()
    session.updated_at = now
    emit_step(session, step, now)


def counted(session: Session, step: Step, reply: ModelReply, cost: Decimal | None) -> None:
    """What a model call read, wrote and cost; None where its price is not known."""
    step.input_tokens, step.output_tokens = reply.input_tokens, reply.output_tokens
    step.cost = cost
    session.input_tokens += reply.input_tokens
    session.output_tokens += reply.output_tokens
    session.spend += cost or Decimal(0)
    session.spend_unknown |= cost is None


def ended(
    session: Session,
    step: Step,
    status: str,
    outcome: str = "",
    detail: str = "",
    live_events: bool = True,
) -> None:
    """The Step is over; what was only for live viewers is trimmed, since the row holds the whole.

    ``live_events`` False: it is certain that there are none.
    """
    now = timezone.now()
    step.status, step.outcome, step.detail, step.ended_at = status, outcome, detail, now
    step.save()
    if live_events:
        told = AgentEvent.objects.filter(session=session, step_id=step.step_id)
        told.filter(type__in=LIVE_ONLY).delete()
    session.updated_at = now
    emit_step(session, step, now)


def live(
    session: Session, context: StepContext, pieces: Iterable[tuple[str, dict[str, Any]]]
) -> None:
    """Events for live viewers only; a piece that comes after its Step's end is dropped."""
    now_active = session.steps.filter(
        step_id=context.step_id, status=Step.Status.ACTIVE, attempt=context.attempt
    )
    if not now_active.exists():
        return
    for type, payload in pieces:
        append(session, type, payload, timezone.now(), context.step_id, context.attempt)
