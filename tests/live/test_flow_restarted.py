"""A worker that has lost a session's Flow makes it up from the history, and goes on as the first would."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from dexweb.engine.client import SessionEngine, connect
from dexweb.engine.embedded import engine_address
from sessions_app.flow import state, terms
from tests.live.steps import ANN, CALL, POLICY, Steps, assert_replays, working


async def eventually(reached: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(30):
        while not await reached():
            await asyncio.sleep(0.02)


async def at_rest(engine: SessionEngine, session_id: str, beyond: int = 0) -> bool:
    seen = await engine.snapshot(session_id)
    return seen.history_events > beyond and not seen.task_attempt


async def open_alone(gate: asyncio.Event, engine: SessionEngine, session_id: str) -> None:
    """What comes of it gets a workflow task of its own."""
    before = (await engine.snapshot(session_id)).history_events
    gate.set()
    await eventually(lambda: at_rest(engine, session_id, before + 3))


@pytest.mark.usefixtures("temporal_engine")
async def test_a_decision_after_two_quiet_ends_and_a_lost_worker_replays() -> None:
    quiet = [replace(CALL, call_id=name, effect="read") for name in ("one", "two")]
    steps = Steps(
        [*quiet, replace(CALL, approval=POLICY)], attempt=state.ToolCallResult("completed", "")
    )
    pool = f"restarts-{uuid.uuid4().hex[:8]}"
    client, engine = await connect(engine_address()), SessionEngine(timeout=30)
    for call in quiet:
        steps.gates[call.call_id].clear()

    def asked() -> list[str]:
        return [body.interrupt_id for body in steps.told if body.kind == "approval_requested"]

    async with working(client, pool, steps):
        first = terms.UserMessage(uuid.uuid4().hex, "Hello", ANN)
        await engine.start_session(state.SessionInput(pool, "desk", "Quiet", pool, ANN, first))

        async def is_asked() -> bool:
            return bool(asked()) and await at_rest(engine, pool)

        await eventually(is_asked)
        for call in quiet:
            await open_alone(steps.gates[call.call_id], engine, pool)
    async with working(client, pool, steps):
        verdict = state.ResolveInterrupt(
            uuid.uuid4().hex, asked()[0], 1, CALL.args_hash, "approve", ANN
        )
        await engine.resolve_interrupt(pool, verdict)
        await engine.stop(pool, state.Stop(uuid.uuid4().hex, "complete", ANN))
        await client.get_workflow_handle(pool).result()
    await assert_replays(client, pool)


@pytest.mark.usefixtures("temporal_engine")
async def test_a_message_after_calls_that_quietly_wait_to_be_tried_again_and_a_lost_worker_replays() -> (
    None
):
    reads = [replace(CALL, call_id=name, effect="read", backoff=0.1) for name in ("one", "two")]
    steps = Steps([*reads, replace(CALL, approval=POLICY)], stands="approval_requested")
    steps.found = state.ToolCallResult("failed", "It broke.", retryable=True)
    pool = f"restarts-{uuid.uuid4().hex[:8]}"
    client, engine = await connect(engine_address()), SessionEngine(timeout=30)
    for call in reads:
        steps.gates[f"reconcile {call.call_id}"].clear()
    async with working(client, pool, steps):
        first = terms.UserMessage(uuid.uuid4().hex, "Hello", ANN)
        await engine.start_session(state.SessionInput(pool, "desk", "Quiet", pool, ANN, first))
        await steps.stood.wait()

        async def both_broke() -> bool:
            return len(steps.asked) == 2 and await at_rest(engine, pool)

        await eventually(both_broke)
        for call in reads:
            # Each comes to its pause, which waits for the recorder only.
            await open_alone(steps.gates[f"reconcile {call.call_id}"], engine, pool)
    steps.attempt = state.ToolCallResult("completed", "")
    said = asyncio.create_task(
        engine.send_message(pool, state.SendMessage(uuid.uuid4().hex, "And more.", ANN))
    )
    async with working(client, pool, steps):
        steps.go.set()
        await said
        await engine.stop(pool, state.Stop(uuid.uuid4().hex, "cancel", ANN))
        await client.get_workflow_handle(pool).result()
    await assert_replays(client, pool)
