"""Turns and decisions on the real engine, measured."""

import asyncio
import statistics
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import psutil
import pytest
from channels.db import database_sync_to_async as in_database
from temporalio import activity
from temporalio.client import Client
from temporalio.worker import Worker

from approvals_app.decisions import decide
from dexweb.engine.client import SessionEngine, connect
from dexweb.engine.embedded import engine_address
from dexweb.engine.slots import SlotCount
from dexweb.engine.worker import (
    BUILD_ID,
    SANDBOX,
    PoolSettings,
    build_workers,
    keep_database_connections,
)
from sessions_app.flow import state, terms
from sessions_app.flow.queues import flow_queue, model_queue
from sessions_app.flow.session import SessionFlow
from sessions_app.tools.mcp import ToolPool
from tests.live.conftest import Live, live, standing_worker  # noqa: F401

# (sessions at once, turns of each): about as many turns in all, for 1, 10 and 50 sessions.
LOADS = ((1, 100), (10, 30), (50, 6))
LASTING_TURNS = 1000
DECISIONS = 30


@activity.defn(name=state.RUN_MODEL)
async def answer_at_once(given: state.RunModelInput) -> state.RunModelResult:
    return state.RunModelResult(said_text=True)


@activity.defn(name=state.RECORD_FACTS)
async def take_note(given: state.RecordInput) -> int:
    return given.facts[-1].n


async def turns_a_second(pool: str, sessions: int, turns: int) -> tuple[float, float]:
    """(turns a second, CPU of this process in ms a turn): each session's messages are queued, and
    all are waited for until they have closed."""
    ids = [f"{pool}-{uuid.uuid4().hex[:12]}" for _ in range(sessions)]
    began, spent = time.monotonic(), time.process_time()
    await asyncio.gather(*(one_session(pk, pool, turns) for pk in ids))
    count = sessions * turns
    took = time.monotonic() - began
    return count / took, (time.process_time() - spent) / count * 1000


async def one_session(session_id: str, pool: str, turns: int) -> None:
    engine, actor = SessionEngine(timeout=60), terms.Actor(0, "bench")
    first = terms.UserMessage(uuid.uuid4().hex, "Hello", actor)
    await engine.start_session(state.SessionInput(session_id, "desk", "bench", pool, actor, first))
    for _ in range(turns - 1):
        rpc = state.SendMessage(uuid.uuid4().hex, "Hello", actor)
        await engine.send_message(session_id, rpc)
    await engine.stop(session_id, state.Stop(uuid.uuid4().hex, "complete", actor))
    await (await engine.client()).get_workflow_handle(session_id).result()


@asynccontextmanager
async def full_workers(client: Client) -> AsyncIterator[str]:
    """Workers as `manage.py worker` runs them. Gives their pool."""
    keep_database_connections()
    tools = ToolPool()
    counts = SlotCount(50), SlotCount(50)
    async with AsyncExitStack() as running:
        running.push_async_callback(tools.aclose)
        for worker in build_workers(client, PoolSettings("full"), tools, *counts):
            await running.enter_async_context(worker)
        yield "full"


@asynccontextmanager
async def bare_workers(client: Client) -> AsyncIterator[str]:
    """The same Flow with the same Steps, in queues of their own, that return and do nothing else.

    So all that a turn costs beyond Temporal itself is what Dexweb's Steps do.
    """
    common = {"build_id": BUILD_ID}
    flow = Worker(
        client,
        task_queue=flow_queue("bare"),
        workflows=[SessionFlow],
        activities=[take_note],
        workflow_runner=SANDBOX,
        **common,
    )
    model = Worker(client, task_queue=model_queue("bare"), activities=[answer_at_once], **common)
    async with flow, model:
        yield "bare"


@pytest.mark.bench
async def test_turns_a_second(live: Live) -> None:  # noqa: F811
    await in_database(live.agent)([{"text": "Hello.", "repeat": True}])
    client = await connect(engine_address())
    async with full_workers(client) as full, bare_workers(client) as bare:
        for pool in (full, bare):
            await turns_a_second(pool, 1, 2)
        for sessions, turns in LOADS:
            ours, spent = await turns_a_second(full, sessions, turns)
            theirs, spent_bare = await turns_a_second(bare, sessions, turns)
            print(
                f"\nturns a second with {sessions} sessions at once: {ours:.1f}, the bare Flow "
                f"{theirs:.1f}, ratio {ours / theirs:.2f} (budget 0.70); "
                f"CPU a turn {spent:.1f} ms, bare {spent_bare:.1f} ms"
            )


@pytest.mark.bench
async def test_memory_of_a_worker_after_a_thousand_turns(live: Live) -> None:  # noqa: F811
    await in_database(live.agent)([{"text": "Hello.", "repeat": True}])
    worker = await in_database(live.worker)("lasting")
    process = psutil.Process(worker.process.pid)
    await turns_a_second("lasting", 10, 2)
    before = process.memory_info().rss / 2**20
    await turns_a_second("lasting", 20, LASTING_TURNS // 20)
    after = process.memory_info().rss / 2**20
    print(
        f"\nmemory of a worker: {before:.0f} MB when warm, {after:.0f} MB {LASTING_TURNS:,} turns later"
    )


@pytest.mark.bench
@pytest.mark.usefixtures("standing_worker")
def test_decision_to_engine(live: Live) -> None:  # noqa: F811
    boss = live.person("boss", "refunds.approve")
    refund = {"order_id": "A-1042", "amount": 1, "currency": "EUR", "reason": "late"}
    calls = [{"tool": "shop__issue_refund", "args": refund}]
    live.agent([{"calls": calls}, {"text": "Done."}, {"repeat": True}], pool="standing")
    to_engine, to_tool = [], []
    for _ in range(DECISIONS):
        session = live.start(boss)
        interrupt = live.ask(session)
        began = time.time()
        decide(
            boss,
            interrupt.pk,
            verdict="approve",
            revision=interrupt.revision,
            args_hash=interrupt.args_hash,
            request_id=str(uuid.uuid4()),
        )
        to_engine.append(time.time() - began)
        live.idle(session)
        to_tool.append(session.calls.get().started_at.timestamp() - began)
    for name, times, budget in (
        ("decision to engine", to_engine, 100),
        ("decision to tool started", to_tool, 250),
    ):
        p95 = statistics.quantiles(times, n=20)[-1] * 1000
        print(
            f"\n{name}: p50 {statistics.median(times) * 1000:.0f} ms, p95 {p95:.0f} ms (budget {budget} ms)"
        )
