"""The Step CompactContext: older messages summarised, so that the model's context fits again."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from channels.db import database_sync_to_async as in_database
from django.utils import timezone
from temporalio import activity

from sessions_app.context_size import context_tokens
from sessions_app.flow.state import COMPACT_CONTEXT, CompactInput, CompactResult
from sessions_app.llm import history
from sessions_app.llm.factory import ModelUnavailable, build_model
from sessions_app.llm.failures import ModelFailed
from sessions_app.llm.stream import ModelReply, stream_response
from sessions_app.llm.window import window_of
from sessions_app.models import ContextSummary, ModelPrice, Session, Step, Turn
from sessions_app.projection import locked, recording
from sessions_app.spend.asked import asked
from sessions_app.spend.limit import Refused, Reservation, spend_limit
from sessions_app.spend.prices import cost_of, own_price, usage_of
from sessions_app.standing import standing
from sessions_app.steps import reports, sources
from sessions_app.steps.compaction import (
    INSTRUCTIONS,
    Boundary,
    boundary_of,
    covered,
    tokens_after,
    transcript,
)
from sessions_app.steps.heartbeat import heartbeats
from sessions_app.steps.reading import Part, parts
from sessions_app.steps.run_model import ENDED, refusal
from sessions_app.stream.append import append
from sessions_app.text import keepable

SUMMARY_CHARACTERS = 32_000
GOES_ON = "The turn goes on with the whole context."
NOTHING = f"Only the newest messages are left, and those are not summarised. {GOES_ON}"


@dataclass(frozen=True)
class Begun:
    """A summary that is to be written, and what it is to be written from."""

    turn: Turn
    price: ModelPrice | None
    reservation: Reservation
    parts: list[Part]
    boundary: Boundary
    text: str
    tokens_before: int


@activity.defn(name=COMPACT_CONTEXT)
async def compact_context(given: CompactInput) -> CompactResult:
    """Write a summary with the turn's own model, and keep it before anything is left out."""
    async with heartbeats():
        begun = await in_database(begin)(given)
        if isinstance(begun, CompactResult):
            return begun
        settings = begun.turn.settings
        try:
            spec = await in_database(sources.model_spec)(settings, 0, "summary")
            reply = await stream_response(
                build_model(spec),
                [history.user_message(begun.text)],
                INSTRUCTIONS,
                [],
                settings["settings"],
                _unheard,
            )
        except (ModelUnavailable, ModelFailed) as error:
            words, retryable = keepable(str(error)), getattr(error, "retryable", False)
            billed = isinstance(error, ModelFailed) and error.billed
            return await in_database(fail)(given, begun, words, retryable, billed)
        return await in_database(complete)(given, begun, reply)


async def _unheard(kind: str, piece: str) -> None:
    """Nobody watches a summary being written."""


def begin(given: CompactInput) -> Begun | CompactResult:
    """Record the start; a summary that is already kept is not written again."""
    context = given.step
    with recording(context.session_id, context.facts) as session:
        reports.measured(session, context)
        if not session.open:
            return CompactResult(error=ENDED)
        if session.summaries.filter(step_id=context.step_id).exists():
            return CompactResult()
        step = reports.step_of(session, context)
        turn = session.turns.get(number=context.turn)
        summary = session.newest_summary
        found = parts(session, summary)
        before = context_tokens(session, turn)
        window = window_of(turn.settings["model"], turn.settings["settings"]) or before
        boundary = boundary_of(found, context.turn, window)
        if boundary is None:
            return CompactResult(error=NOTHING)
        price = own_price(turn.settings["model"])
        admitted = spend_limit().admit(asked(session, turn, step.step_id, context.attempt, price))
        if isinstance(admitted, Refused):
            return CompactResult(spend_refused=refusal(admitted))
        step.model = turn.settings["model"]
        reports.started(session, step, context.attempt)
        session.model_calls += 1
    text = transcript(summary.text if summary else "", covered(found, boundary), window)
    return Begun(turn, price, admitted.reservation, found, boundary, text, before)


def fail(
    given: CompactInput, begun: Begun, error: str, retryable: bool, billed: bool
) -> CompactResult:
    with recording(given.step.session_id, given.step.facts):
        if not billed:
            spend_limit().settle(begun.reservation, Decimal(0))
    words = f"Older messages could not be summarised: {error[:1500]} {GOES_ON}"
    return CompactResult(error=words, retryable=retryable)


def complete(given: CompactInput, begun: Begun, reply: ModelReply) -> CompactResult:
    """Keep the summary; from here on the model reads it in place of what it covers."""
    cost = cost_of(begun.turn.settings["model"], begun.price, usage_of(reply), reply.cost)
    text = keepable(reply.text.strip()[:SUMMARY_CHARACTERS])
    with locked(given.step.session_id) as session:
        spend_limit().settle(begun.reservation, cost)
        if not session.open:
            return CompactResult(error=ENDED)
        step = reports.step_of(session, given.step)
        reports.counted(session, step, reply, cost)
        if not text:
            step.save()
            return CompactResult(error=f"The model wrote no summary. {GOES_ON}", retryable=True)
        summary, made = ContextSummary.objects.get_or_create(
            session=session,
            step_id=step.step_id,
            defaults={
                "turn": given.step.turn,
                "last_turn": begun.boundary.last_turn,
                "position": begun.boundary.position,
                "covers": begun.boundary.words,
                "text": text,
                "tokens_before": begun.tokens_before,
                "tokens_after": tokens_after(text, begun.parts, begun.boundary),
                "created_at": timezone.now(),
            },
        )
        if made:
            _tell(session, step, summary)
    return CompactResult()


def _tell(session: Session, step: Step, summary: ContextSummary) -> None:
    step.text = summary.text
    session.context_tokens = summary.tokens_after
    payload = {
        "covers": summary.covers,
        "last_turn": summary.last_turn,
        "tokens_before": summary.tokens_before,
        "tokens_after": summary.tokens_after,
        "step_id": step.step_id,
        "session": standing(session),
    }
    append(session, "session.compacted", payload, summary.created_at, step.step_id, step.attempt)
    reports.ended(session, step, Step.Status.COMPLETED, "completed", f"summarised {summary.covers}")
