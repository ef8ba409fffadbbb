"""Signs of life of a running Step."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from temporalio import activity


@asynccontextmanager
async def heartbeats() -> AsyncIterator[None]:
    """Tell the engine that this Step lives, several times within its heartbeat limit.

    A heartbeat's answer is also how a cancellation reaches a running Step.
    """
    limit = activity.info().heartbeat_timeout
    every = limit.total_seconds() / 5 if limit else 2.0
    task = asyncio.create_task(_beat(min(every, 1.0)))
    try:
        yield
    finally:
        task.cancel()


async def _beat(every: float) -> None:
    while True:
        # Its start is a sign of life as well, so a short Step sends none of its own.
        await asyncio.sleep(every)
        activity.heartbeat()
