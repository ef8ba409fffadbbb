"""The worker: a process that runs the Flow and its Steps for one pool."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from django.db import connection, connections
from temporalio.client import Client
from temporalio.worker import Worker
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from dexweb.engine.client import connect, task_queue
from dexweb.engine.embedded import engine_address
from dexweb.engine.sweeper import sweep_forever
from sessions_app.flow.session import SessionFlow
from sessions_app.steps.call_tool import CallTool, reconcile_call
from sessions_app.steps.record import record_facts
from sessions_app.steps.run_model import RunModel
from sessions_app.tools.mcp import ToolPool

GRACE = timedelta(seconds=4)
# The sandbox still refuses clocks, randomness and I/O; importing every module anew for each session
# is what is left out, since `flow` keeps no state in modules and the import costs more than a turn.
SANDBOX = SandboxedWorkflowRunner(SandboxRestrictions.default.with_passthrough_all_modules())

# Given, since the engine's default hashes the code of every loaded module: two seconds of each start.
BUILD_ID = "dexweb"


def build_worker(client: Client, pool: str, slots: int, tools: ToolPool) -> Worker:
    """A worker for ``pool`` that runs at most ``slots`` Steps at once."""
    return Worker(
        client,
        task_queue=task_queue(pool),
        workflows=[SessionFlow],
        activities=[RunModel(tools).run, CallTool(tools).run, reconcile_call, record_facts],
        workflow_runner=SANDBOX,
        build_id=BUILD_ID,
        max_concurrent_activities=slots,
        # How long a session waits for a killed worker that had it cached; people wait with it.
        sticky_queue_schedule_to_start_timeout=timedelta(seconds=2),
        graceful_shutdown_timeout=GRACE,
        # A heartbeat's answer brings a cancellation; the default would hold it back for seconds.
        max_heartbeat_throttle_interval=timedelta(seconds=1),
        default_heartbeat_throttle_interval=timedelta(seconds=1),
    )


async def serve(pool: str, slots: int, stop: asyncio.Event) -> None:
    """Run a worker, and beside it the delivery of kept decisions, until ``stop`` is set."""
    keep_database_connections()
    tools = ToolPool()
    client = await connect(engine_address())
    sweeper = asyncio.create_task(sweep_forever())
    try:
        async with build_worker(client, pool, slots, tools):
            await stop.wait()
    finally:
        sweeper.cancel()
        await tools.aclose()


def keep_database_connections() -> None:
    """A worker's few threads live as long as it does, so on SQLite each keeps its connection."""
    if connection.vendor == "sqlite":
        connections.settings["default"]["CONN_MAX_AGE"] = None
