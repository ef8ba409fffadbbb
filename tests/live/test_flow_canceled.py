"""A turn is canceled at the worst moment: the Flow on the real engine, with Steps that stand still."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from dexweb.engine.client import SessionEngine, connect
from dexweb.engine.embedded import engine_address
from sessions_app.flow import state, terms
from sessions_app.flow.limits import Limits
from tests.live.steps import ANN, CALL, POLICY, Steps, assert_replays, working


@asynccontextmanager
async def session_on(steps: Steps) -> AsyncIterator[tuple[SessionEngine, str]]:
    """A session whose first turn has come to where ``steps`` stands; replayed at the end."""
    pool = f"stands-{uuid.uuid4().hex[:8]}"
    client, engine = await connect(engine_address()), SessionEngine(timeout=30)
    async with working(client, pool, steps):
        first = terms.UserMessage(uuid.uuid4().hex, "Hello", ANN)
        await engine.start_session(
            state.SessionInput(
                pool,
                "desk",
                "It stands",
                pool,
                ANN,
                first,
                limits=Limits(backoff=30.0, heartbeat=3.0),
            )
        )
        try:
            async with asyncio.timeout(30):
                await steps.stood.wait()
            yield engine, pool
        finally:
            steps.go.set()
        await engine.stop(pool, state.Stop(uuid.uuid4().hex, "cancel", ANN))
    await assert_replays(client, pool)


async def cancel_and_go_on(engine: SessionEngine, session_id: str, steps: Steps) -> None:
    """Cancel the turn, and have another one, which the same session still takes."""
    answer = await engine.cancel_turn(session_id, state.CancelTurn(uuid.uuid4().hex, ANN))
    steps.go.set()
    assert answer.state == "canceled"
    await engine.send_message(session_id, state.SendMessage(uuid.uuid4().hex, "Again", ANN))
    assert (await engine.snapshot(session_id)).status == "running"


@pytest.mark.usefixtures("temporal_engine")
async def test_a_turn_canceled_while_it_is_being_recorded_ends_and_its_session_goes_on() -> None:
    steps = Steps([replace(CALL, approval=POLICY)], "approval_requested")
    async with session_on(steps) as (engine, session_id):
        await cancel_and_go_on(engine, session_id, steps)
        closed = [body for body in steps.told if body.kind == "interrupt_closed"]
        assert {body.state for body in closed} == {"canceled"}


@pytest.mark.usefixtures("temporal_engine")
async def test_a_turn_canceled_while_a_call_is_looked_into_still_gets_its_outcome() -> None:
    steps = Steps([CALL], "reconcile")
    async with session_on(steps) as (engine, session_id):
        await cancel_and_go_on(engine, session_id, steps)
        assert [asked.canceled for asked in steps.asked] == [False, True]
        ends = [one for one in steps.told if one.kind == "step_changed" and one.tool == CALL.tool]
        assert "outcome_unknown" in {one.outcome for one in ends}


@pytest.mark.usefixtures("temporal_engine")
async def test_a_turn_canceled_between_two_attempts_says_that_the_first_may_have_run() -> None:
    again = state.ToolCallResult("failed", "It was cut off.", retryable=True)
    steps = Steps([CALL], "step_changed retrying", again)
    async with session_on(steps) as (engine, session_id):
        await cancel_and_go_on(engine, session_id, steps)
        closed = [body for body in steps.told if body.kind == "call_closed"]
        assert {body.outcome for body in closed} == {"outcome_unknown"}
