"""The worker: a process that runs the Flow and its Steps for one pool."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import connection, connections
from temporalio.client import Client
from temporalio.worker import Worker
from temporalio.worker.workflow_sandbox import SandboxRestrictions

from dexweb.engine.client import connect
from dexweb.engine.embedded import engine_address
from dexweb.engine.marks import MarkingRunner
from dexweb.engine.presence import Presence, report_forever
from dexweb.engine.slots import SlotCount
from dexweb.engine.sweeper import sweep_forever
from dexweb.engine.versions import deployment_config
from dexweb.keys import credential_keys
from sessions_app.flow.queues import flow_queue, model_queue, tool_queue
from sessions_app.flow.session import SessionFlow
from sessions_app.steps.call_tool import CallTool, reconcile_call
from sessions_app.steps.compact import compact_context
from sessions_app.steps.delegate import begin_delegation, end_delegation
from sessions_app.steps.record import record_facts
from sessions_app.steps.run_model import RunModel
from sessions_app.tools.mcp import ToolPool

TOOL_SLOTS = 50
MODEL_SLOTS = 50
RECORD_SLOTS = 50
GRACE = 10.0
# The sandbox still refuses clocks, randomness and I/O; importing every module anew for each session
# is what is left out, since `flow` keeps no state in modules and the import costs more than a turn.
SANDBOX = MarkingRunner(SandboxRestrictions.default.with_passthrough_all_modules())

# Given, since the engine's default hashes the code of every loaded module: two seconds of each start.
BUILD_ID = "dexweb"


@dataclass(frozen=True)
class PoolSettings:
    """What a worker serves: ``pool``, Steps of each kind at once, and the seconds that running Steps
    have once it is told to stop."""

    pool: str = "default"
    tool_slots: int = TOOL_SLOTS
    model_slots: int = MODEL_SLOTS
    grace: float = GRACE


def build_workers(
    client: Client, given: PoolSettings, tools: ToolPool, models: SlotCount, calls: SlotCount
) -> list[Worker]:
    """One for each queue of the pool: the Flow with its records, model calls, tools."""
    model, call = RunModel(tools).run, CallTool(tools).run
    version = deployment_config(settings.DEXWEB_WORKER_VERSION, otherwise=BUILD_ID)

    def worker(queue: str, activities: list[Callable[..., Any]], slots: int, **more: Any) -> Worker:
        return Worker(
            client,
            task_queue=queue,
            activities=activities,
            deployment_config=version,
            max_concurrent_activities=slots,
            graceful_shutdown_timeout=timedelta(seconds=given.grace),
            # A heartbeat's answer brings a cancellation; the default would hold it back for seconds.
            max_heartbeat_throttle_interval=timedelta(seconds=1),
            default_heartbeat_throttle_interval=timedelta(seconds=1),
            **more,
        )

    return [
        worker(
            flow_queue(given.pool),
            # The last two for Steps that were scheduled before kinds had queues of their own.
            [reconcile_call, record_facts, begin_delegation, end_delegation, model, call],
            RECORD_SLOTS,
            workflows=[SessionFlow],
            workflow_runner=SANDBOX,
            # How long a session waits for a killed worker that had it cached; people wait with it.
            sticky_queue_schedule_to_start_timeout=timedelta(seconds=2),
        ),
        worker(
            model_queue(given.pool), [model, compact_context], models.slots, interceptors=[models]
        ),
        worker(tool_queue(given.pool), [call], calls.slots, interceptors=[calls]),
    ]


async def run_until(workers: Sequence[Worker], stop: asyncio.Event) -> None:
    """Run them side by side until ``stop`` is set, then let all finish in the same grace.

    Raises what ended one of them, once the others have stopped too.
    """
    runs = [asyncio.create_task(worker.run()) for worker in workers]
    asked = asyncio.create_task(stop.wait())
    await asyncio.wait([*runs, asked], return_when=asyncio.FIRST_COMPLETED)
    asked.cancel()
    await asyncio.gather(*(worker.shutdown() for worker in workers))
    await asyncio.gather(*runs)


async def serve(given: PoolSettings, stop: asyncio.Event) -> None:
    """Run a pool's workers, and beside them the delivery of kept decisions, until ``stop`` is set."""
    keep_database_connections()
    # Made now where none is given, so that a backup has it before the first credential is stored.
    credential_keys(settings.DEXWEB_VAR, settings.DEXWEB_CREDENTIAL_KEYS)
    tools = ToolPool()
    client = await connect(engine_address())
    models, calls = SlotCount(given.model_slots), SlotCount(given.tool_slots)
    presence = Presence(client.identity, given.pool, models, calls, stop)
    beside = [asyncio.create_task(sweep_forever()), asyncio.create_task(report_forever(presence))]
    try:
        await run_until(build_workers(client, given, tools, models, calls), stop)
    finally:
        for task in beside:
            task.cancel()
        await presence.leave()
        await tools.aclose()


def keep_database_connections() -> None:
    """A worker's few threads live as long as it does, so on SQLite each keeps its connection."""
    if connection.vendor == "sqlite":
        connections.settings["default"]["CONN_MAX_AGE"] = None
