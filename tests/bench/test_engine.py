"""Turns and decisions on the real engine, measured."""

import asyncio
import statistics
import time
import uuid
from contextlib import AsyncExitStack

import pytest
from channels.db import database_sync_to_async as in_database
from temporalio import activity
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

SESSIONS = 10
TURNS = 30
DECISIONS = 30


@activity.defn(name=state.RUN_MODEL)
async def answer_at_once(given: state.RunModelInput) -> state.RunModelResult:
    return state.RunModelResult(said_text=True)


async def turns_a_second(pool: str, record_facts: bool) -> float:
    """Many sessions at once, each with its messages queued, until all have closed."""
    await one_session(f"warm-{uuid.uuid4().hex[:12]}", pool, record_facts)
    ids = [f"bench-{uuid.uuid4().hex[:12]}" for _ in range(SESSIONS)]
    began = time.monotonic()
    await asyncio.gather(*(one_session(pk, pool, record_facts) for pk in ids))
    return SESSIONS * TURNS / (time.monotonic() - began)


async def one_session(session_id: str, pool: str, record_facts: bool) -> None:
    engine, actor = SessionEngine(timeout=60), terms.Actor(0, "bench")
    first = terms.UserMessage(uuid.uuid4().hex, "Hello", actor)
    await engine.start_session(
        state.SessionInput(
            session_id, "desk", "bench", pool, actor, first, record_facts=record_facts
        )
    )
    for _ in range(TURNS - 1):
        rpc = state.SendMessage(uuid.uuid4().hex, "Hello", actor)
        await engine.send_message(session_id, rpc)
    await engine.stop(session_id, state.Stop(uuid.uuid4().hex, "complete", actor))
    await (await engine.client()).get_workflow_handle(session_id).result()


@pytest.mark.bench
async def test_turns_a_second(live: Live) -> None:  # noqa: F811
    await in_database(live.agent)([{"text": "Hello.", "repeat": True}])
    keep_database_connections()
    client = await connect(engine_address())
    tools = ToolPool()
    counts = SlotCount(50), SlotCount(50)
    async with AsyncExitStack() as running:
        for worker in build_workers(client, PoolSettings("full"), tools, *counts):
            await running.enter_async_context(worker)
        full = await turns_a_second("full", record_facts=True)
    await tools.aclose()
    flow = Worker(
        client,
        task_queue=flow_queue("bare"),
        workflows=[SessionFlow],
        workflow_runner=SANDBOX,
        build_id=BUILD_ID,
    )
    model = Worker(
        client, task_queue=model_queue("bare"), activities=[answer_at_once], build_id=BUILD_ID
    )
    async with flow, model:
        bare = await turns_a_second("bare", record_facts=False)
    print(f"\nturns a second: {full:.1f}; the same Flow with facts switched off: {bare:.1f}")
    print(f"ratio {full / bare:.2f} (budget 0.70)")


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
