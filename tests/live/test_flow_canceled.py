"""A turn is canceled at the worst moment: the Flow on the real engine, with Steps that stand still."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from temporalio import activity
from temporalio.exceptions import ApplicationError
from temporalio.worker import Replayer, Worker

from dexweb.engine.client import SessionEngine, connect
from dexweb.engine.codec import data_converter
from dexweb.engine.embedded import engine_address
from dexweb.engine.worker import BUILD_ID, SANDBOX
from sessions_app.flow import state, terms
from sessions_app.flow.limits import Limits
from sessions_app.flow.queues import flow_queue, model_queue, tool_queue
from sessions_app.flow.session import SessionFlow

ANN = terms.Actor(1, "ann")
POLICY = terms.ApprovalPolicy("refunds.approve", "high", 600.0, "reject")
CALL = state.ToolCallPlan("call-1", "shop__send_email", "idempotent", "hash", 60.0, attempts=3)


@dataclass
class Steps:
    """Answers of Steps. The first that ``stands`` names stands until `go`, having set `stood`."""

    call: state.ToolCallPlan
    stands: str
    attempt: state.ToolCallResult | None = None
    stood: asyncio.Event = field(default_factory=asyncio.Event)
    go: asyncio.Event = field(default_factory=asyncio.Event)
    asked: list[state.ReconcileInput] = field(default_factory=list)
    told: list[Any] = field(default_factory=list)

    async def _at(self, what: str) -> None:
        if what == self.stands and not self.stood.is_set():
            self.stood.set()
            await self.go.wait()

    @activity.defn(name=state.RUN_MODEL)
    async def run_model(self, given: state.RunModelInput) -> state.RunModelResult:
        calls = [self.call] if given.step.turn == 1 else []
        return state.RunModelResult(calls, said_text=True)

    @activity.defn(name=state.RECORD_FACTS)
    async def record(self, given: state.RecordInput) -> int:
        self.told += [fact.body for fact in given.facts]
        for body in (fact.body for fact in given.facts):
            await self._at(f"{body.kind} {getattr(body, 'outcome', '')}".strip())
        return given.facts[-1].n

    @activity.defn(name=state.CALL_TOOL)
    async def call_tool(self, given: state.CallToolInput) -> state.ToolCallResult:
        if self.attempt is None:
            raise ApplicationError("the connection broke")
        return self.attempt

    @activity.defn(name=state.RECONCILE_CALL)
    async def reconcile(self, given: state.ReconcileInput) -> state.ToolCallResult:
        self.asked.append(given)
        await self._at("reconcile")
        return state.ToolCallResult("outcome_unknown", "Nobody knows.")


@asynccontextmanager
async def session_on(steps: Steps) -> AsyncIterator[tuple[SessionEngine, str]]:
    """A session whose first turn has come to where ``steps`` stands; replayed at the end."""
    pool = f"stands-{uuid.uuid4().hex[:8]}"
    client = await connect(engine_address())
    flow: dict[str, Any] = {"workflows": [SessionFlow], "workflow_runner": SANDBOX}
    kinds = [
        (flow_queue(pool), [steps.record, steps.reconcile], flow),
        (model_queue(pool), [steps.run_model], {}),
        (tool_queue(pool), [steps.call_tool], {}),
    ]
    engine = SessionEngine(timeout=30)
    async with AsyncExitStack() as running:
        for queue, activities, more in kinds:
            worker = Worker(
                client, task_queue=queue, activities=activities, build_id=BUILD_ID, **more
            )
            await running.enter_async_context(worker)
        running.callback(steps.go.set)
        first = terms.UserMessage(uuid.uuid4().hex, "Hello", ANN)
        given = state.SessionInput(
            pool, "desk", "It stands", pool, ANN, first, limits=Limits(backoff=30.0)
        )
        await engine.start_session(given)
        async with asyncio.timeout(30):
            await steps.stood.wait()
        yield engine, pool
        await engine.stop(pool, state.Stop(uuid.uuid4().hex, "cancel", ANN))
        history = await client.get_workflow_handle(pool).fetch_history()
    replayer = Replayer(
        workflows=[SessionFlow],
        data_converter=data_converter(),
        workflow_runner=SANDBOX,
        build_id=BUILD_ID,
        # A busy machine is no deadlock.
        debug_mode=True,
    )
    await replayer.replay_workflow(history)


async def cancel_and_go_on(engine: SessionEngine, session_id: str, steps: Steps) -> None:
    """Cancel the turn, and have another one, which the same session still takes."""
    answer = await engine.cancel_turn(session_id, state.CancelTurn(uuid.uuid4().hex, ANN))
    steps.go.set()
    assert answer.state == "canceled"
    await engine.send_message(session_id, state.SendMessage(uuid.uuid4().hex, "Again", ANN))
    assert (await engine.snapshot(session_id)).status == "running"


@pytest.mark.usefixtures("temporal_engine")
async def test_a_turn_canceled_while_it_is_being_recorded_ends_and_its_session_goes_on() -> None:
    steps = Steps(replace(CALL, approval=POLICY), "approval_requested")
    async with session_on(steps) as (engine, session_id):
        await cancel_and_go_on(engine, session_id, steps)
        closed = [body for body in steps.told if body.kind == "interrupt_closed"]
        assert {body.state for body in closed} == {"canceled"}


@pytest.mark.usefixtures("temporal_engine")
async def test_a_turn_canceled_while_a_call_is_looked_into_still_gets_its_outcome() -> None:
    steps = Steps(CALL, "reconcile")
    async with session_on(steps) as (engine, session_id):
        await cancel_and_go_on(engine, session_id, steps)
        assert [asked.canceled for asked in steps.asked] == [False, True]
        ends = [one for one in steps.told if one.kind == "step_changed" and one.tool == CALL.tool]
        assert "outcome_unknown" in {one.outcome for one in ends}


@pytest.mark.usefixtures("temporal_engine")
async def test_a_turn_canceled_between_two_attempts_says_that_the_first_may_have_run() -> None:
    again = state.ToolCallResult("failed", "It was cut off.", retryable=True)
    steps = Steps(CALL, "step_changed retrying", again)
    async with session_on(steps) as (engine, session_id):
        await cancel_and_go_on(engine, session_id, steps)
        closed = [body for body in steps.told if body.kind == "call_closed"]
        assert {body.outcome for body in closed} == {"outcome_unknown"}
