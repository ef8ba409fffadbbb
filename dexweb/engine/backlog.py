"""What waits in a pool's queues, as the engine counts it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from google.protobuf.duration_pb2 import Duration
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client

from sessions_app.flow.queues import flow_queue, model_queue, tool_queue

AT_ONCE = 12


@dataclass(frozen=True)
class Backlog:
    """How many wait in one queue, and for how many seconds the oldest has. Both are the engine's
    estimates. `given_to` are the versions of workers that get them, the current one first; "" stands
    for workers without one.
    """

    waiting: int
    oldest: float
    given_to: tuple[str, ...]


@dataclass(frozen=True)
class PoolBacklog:
    """`flow` are sessions that are to go on, `model` model calls, `tools` tool calls."""

    flow: Backlog
    model: Backlog
    tools: Backlog


async def of_pools(client: Client, pools: Iterable[str]) -> dict[str, PoolBacklog]:
    """Three questions a pool, a few at once. Raises `RPCError`."""
    free = asyncio.Semaphore(AT_ONCE)

    async def of_queue(name: str, kind: TaskQueueType.ValueType) -> Backlog:
        async with free:
            return await _of_queue(client, name, kind)

    async def of_pool(pool: str) -> PoolBacklog:
        activities = TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY
        return PoolBacklog(
            *await asyncio.gather(
                of_queue(flow_queue(pool), TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW),
                of_queue(model_queue(pool), activities),
                of_queue(tool_queue(pool), activities),
            )
        )

    names = list(pools)
    return dict(zip(names, await asyncio.gather(*map(of_pool, names)), strict=True))


async def _of_queue(client: Client, name: str, kind: TaskQueueType.ValueType) -> Backlog:
    answer = await client.workflow_service.describe_task_queue(
        DescribeTaskQueueRequest(
            namespace=client.namespace,
            task_queue=TaskQueue(name=name),
            task_queue_type=kind,
            report_stats=True,
        )
    )
    stats, routing = answer.stats, answer.versioning_info
    given_to = [routing.current_deployment_version.build_id]
    if routing.ramping_version_percentage:
        given_to.append(routing.ramping_deployment_version.build_id)
    age = _seconds(stats.approximate_backlog_age)
    return Backlog(stats.approximate_backlog_count, age, tuple(given_to))


def _seconds(duration: Duration) -> float:
    return duration.seconds + duration.nanos / 1e9
