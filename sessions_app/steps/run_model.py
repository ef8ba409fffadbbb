"""The Step RunModel: one model call, streamed, and what it decided."""

import asyncio
import time
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from channels.db import database_sync_to_async as in_database
from django.utils import timezone
from pydantic_ai.messages import ModelMessage
from temporalio import activity

from sessions_app.context_size import context_tokens
from sessions_app.flow.state import (
    RUN_MODEL,
    RunModelInput,
    RunModelResult,
    SpendRefusal,
    StepContext,
)
from sessions_app.llm.factory import ModelSpec, ModelUnavailable, build_model
from sessions_app.llm.failures import ModelFailed
from sessions_app.llm.stream import ModelReply, stream_response
from sessions_app.llm.window import window_of
from sessions_app.models import Agent, ModelPrice, Session, Step, Turn
from sessions_app.projection import locked, recording
from sessions_app.spend.asked import asked
from sessions_app.spend.limit import Refused, Reservation, spend_limit
from sessions_app.spend.prices import cost_of, own_price, usage_of
from sessions_app.standing import standing
from sessions_app.steps import reports, sources
from sessions_app.steps.heartbeat import heartbeats
from sessions_app.steps.reading import conversation
from sessions_app.steps.requests import Judged, judge_all, plan_of, record_request
from sessions_app.stream.append import append
from sessions_app.text import keepable
from sessions_app.tools import builtin
from sessions_app.tools.mcp import (
    ConnectionSpec,
    ToolCallError,
    ToolDef,
    ToolPool,
)

DELTAS_A_SECOND = 10
ENDED = "The session has ended."
GIVEN_UP = "This model call was given up before it answered."


@dataclass(frozen=True)
class Begun:
    """A call that is recorded as started, and what the spend limit keeps for it."""

    session: Session
    turn: Turn
    agent: Agent
    price: ModelPrice | None
    reservation: Reservation


@dataclass(frozen=True)
class ModelCall:
    """All that one model call needs."""

    spec: ModelSpec
    instructions: str
    settings: dict[str, Any]
    messages: list[ModelMessage]
    connections: list[ConnectionSpec]


class RunModel:
    """The activity, with the tool connections of its worker."""

    def __init__(self, pool: ToolPool) -> None:
        self._pool = pool

    @activity.defn(name=RUN_MODEL)
    async def run(self, given: RunModelInput) -> RunModelResult:
        async with heartbeats():
            begun = await in_database(begin)(given)
            if isinstance(begun, RunModelResult):
                return begun
            try:
                call = await in_database(gather)(given, begun)
                tools = await self._tools(begun.agent, call.connections)
                deltas = Deltas(given.step)
                reply = await stream_response(
                    build_model(call.spec),
                    call.messages,
                    call.instructions,
                    tools,
                    call.settings,
                    deltas.add,
                )
            except (ModelUnavailable, ModelFailed, ToolCallError) as error:
                retryable = getattr(error, "retryable", False)
                words = keepable(str(error))
                billed = isinstance(error, ModelFailed) and error.billed
                failed = await in_database(fail)(given, begun, words, retryable, billed)
                too_long = getattr(error, "kind", "") == "context_too_long"
                return replace(failed, too_long=too_long and given.compact_over > 0)
            # Not inside the transaction: a schema is its server's word, and may be slow to follow.
            judged = await asyncio.to_thread(judge_all, reply, tools, given.parallel_calls)
            return await in_database(complete)(given, begun, reply, tools, judged, deltas.told)

    async def _tools(self, agent: Agent, connections: list[ConnectionSpec]) -> list[ToolDef]:
        """What the model is offered: a tool whose policy is switched off is as good as not there."""
        lists = await asyncio.gather(*(self._pool.known_tools(spec) for spec in connections))
        found = [tool for tools in lists for tool in tools]
        if not agent.some_off:  # type: ignore[attr-defined]
            return found + builtin.tools_of(agent)
        enabled = [tool for tool in found if agent.policy_for(tool.name).enabled]
        return enabled + builtin.offered(agent)


def begin(given: RunModelInput) -> Begun | RunModelResult:
    """Ask the spend limit and record the start; a call that is already recorded is answered."""
    context = given.step
    with recording(context.session_id, context.facts) as session:
        reports.measured(session, context)
        if not session.open:
            return RunModelResult(error=ENDED)
        step = reports.step_of(session, context)
        if step.response is not None:
            return recorded(session, step)
        if step.ended_at or context.attempt < step.attempt:
            return RunModelResult(error=GIVEN_UP)
        turn = reports.turn_of(session, context)
        agent = sources.agent_named(given.agent)
        if not turn.settings:
            turn.settings = sources.turn_settings(agent, turn.changes)
            turn.save(update_fields=["settings"])
        window = window_of(turn.settings["model"], turn.settings["settings"])
        over = int(window * given.compact_over) if window else 0
        if over and context_tokens(session, turn) > over:
            return RunModelResult(too_long=True)
        price = own_price(turn.settings["model"])
        admitted = spend_limit().admit(asked(session, turn, step.step_id, context.attempt, price))
        if isinstance(admitted, Refused):
            return RunModelResult(spend_refused=refusal(admitted))
        step.model = turn.settings["model"]
        session.turn_model_calls += step.started_at is None
        reports.started(session, step, context.attempt)
        session.model_calls += 1
        append(
            session,
            "model.started",
            {"model": step.model, "turn": context.turn},
            timezone.now(),
            context.step_id,
            context.attempt,
        )
    return Begun(session, turn, agent, price, admitted.reservation)


def refusal(refused: Refused) -> SpendRefusal:
    """As the engine carries it."""
    until = refused.until.isoformat() if refused.until else ""
    spent, limit = str(refused.spent), str(refused.limit)
    return SpendRefusal(refused.reason, refused.words, refused.budget, spent, limit, until)


def gather(given: RunModelInput, begun: Begun) -> ModelCall:
    """What the call needs. Raises `ModelUnavailable`."""
    agent, turn = begun.agent, begun.turn
    if not agent.enabled:
        raise ModelUnavailable(f"The agent {agent.name} is disabled.")
    if agent.some_off:  # type: ignore[attr-defined]
        sources.with_policies(agent)
    index = int(given.step.step_id.rpartition("-")[2]) - 1
    return ModelCall(
        spec=sources.model_spec(turn.settings, index),
        instructions=turn.settings["instructions"],
        settings=turn.settings["settings"],
        messages=conversation(begun.session),
        connections=sources.connection_specs(agent),
    )


def recorded(session: Session, step: Step) -> RunModelResult:
    """The result of a call whose answer reached the rows but not the engine: it is not paid twice."""
    calls = session.calls.filter(model_step=step.step_id).order_by("position")
    return RunModelResult(calls=[plan_of(call) for call in calls], said_text=bool(step.text))


def fail(
    given: RunModelInput, begun: Begun, error: str, retryable: bool, billed: bool
) -> RunModelResult:
    """Record that the attempt failed. The Flow says whether another one follows."""
    with recording(given.step.session_id, given.step.facts) as session:
        if not billed:
            spend_limit().settle(begun.reservation, Decimal(0))
        if session.open:
            append(
                session,
                "model.failed",
                {"error": error[:2000], "retryable": retryable and not given.last_attempt},
                timezone.now(),
                given.step.step_id,
                given.step.attempt,
            )
    return RunModelResult(error=error[:2000], retryable=retryable)


def complete(
    given: RunModelInput,
    begun: Begun,
    reply: ModelReply,
    tools: list[ToolDef],
    judged: list[Judged],
    told_live: bool,
) -> RunModelResult:
    """Record the answer, and each call that it asks for as judged by its policy.

    ``told_live``: pieces of it were told while it was written.
    """
    agent = begun.agent
    schemas = {tool.name: tool for tool in tools}
    cost = cost_of(begun.turn.settings["model"], begun.price, usage_of(reply), reply.cost)
    if reply.calls:
        sources.with_policies(agent)
    with locked(given.step.session_id) as session:
        # Before anything else: it is owed even where the session has ended meanwhile.
        spend_limit().settle(begun.reservation, cost)
        if not session.open:
            return RunModelResult(error=ENDED)
        step = reports.step_of(session, given.step)
        if step.response is not None:
            return recorded(session, step)
        if step.ended_at:
            return RunModelResult(error=GIVEN_UP)
        plans = [
            record_request(
                session, given.step, position, call, agent, schemas.get(call.tool), found
            )
            for position, (call, found) in enumerate(zip(reply.calls, judged, strict=True))
        ]
        step.text, step.reasoning = keepable(reply.text), keepable(reply.reasoning)
        step.response = reply.response_json
        reports.counted(session, step, reply, cost)
        session.context_tokens = reply.input_tokens + reply.output_tokens
        session.context_window = window_of(step.model, begun.turn.settings["settings"])
        _tell_completed(session, given.step, reply, cost)
        reports.ended(
            *(session, step, Step.Status.COMPLETED, "completed", _decided(reply)),
            live_events=told_live or step.attempt > 1,
        )
    return RunModelResult(calls=plans, said_text=bool(reply.text))


def _decided(reply: ModelReply) -> str:
    if not reply.calls:
        return "answered"
    return f"asked for {len(reply.calls)} call{'' if len(reply.calls) == 1 else 's'}"


def _tell_completed(
    session: Session, context: StepContext, reply: ModelReply, cost: Decimal | None
) -> None:
    append(
        session,
        "model.completed",
        {
            "text": keepable(reply.text),
            "calls": [
                {
                    "call_id": call.call_id,
                    "tool": call.tool,
                    "args_preview": keepable(call.args_json[:200]),
                }
                for call in reply.calls
            ],
            "input_tokens": reply.input_tokens,
            "output_tokens": reply.output_tokens,
            "cost": None if cost is None else str(cost),
            "finish_reason": reply.finish_reason,
            "session": standing(session),
        },
        timezone.now(),
        context.step_id,
        context.attempt,
    )


class Deltas:
    """Batches a model's pieces into at most ten events a second."""

    def __init__(self, context: StepContext) -> None:
        self._context = context
        self._pieces: list[tuple[str, str]] = []
        self.told = False
        # A whole answer within the first moment is told once, by its end.
        self._last = time.monotonic()

    async def add(self, kind: str, piece: str) -> None:
        """The end of the stream needs no last batch: the completed event holds the whole."""
        type = "model.reasoning" if kind == "reasoning" else "model.delta"
        if self._pieces and self._pieces[-1][0] == type:
            self._pieces[-1] = (type, self._pieces[-1][1] + piece)
        else:
            self._pieces.append((type, piece))
        if time.monotonic() - self._last >= 1 / DELTAS_A_SECOND:
            await self._flush()

    async def _flush(self) -> None:
        pieces, self._pieces, self.told = self._pieces, [], True
        await in_database(_tell_live)(self._context, pieces)
        self._last = time.monotonic()


def _tell_live(context: StepContext, pieces: list[tuple[str, str]]) -> None:
    with locked(context.session_id) as session:
        reports.live(session, context, [(type, {"text": keepable(text)}) for type, text in pieces])
