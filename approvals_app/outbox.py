"""Delivers decisions that were kept while the engine was away."""

import asyncio
import logging

from channels.db import database_sync_to_async as in_database

from approvals_app.decisions import pending_delivery, redeliver

log = logging.getLogger(__name__)

EVERY = 2.0


async def sweep_forever() -> None:
    """Sweep again and again; safe beside other workers, since the Flow takes a request id once."""
    # A thread of its own: the Steps that a delivery wakes need the worker's database thread.
    sweep_once = in_database(sweep, thread_sensitive=False)
    while True:
        try:
            await sweep_once()
        except Exception:
            log.exception("the outbox could not be swept")
        await asyncio.sleep(EVERY)


def sweep() -> int:
    """Try everything that waits for delivery, once. Returns how much there was."""
    waiting = pending_delivery()
    for decision in waiting:
        redeliver(decision)
    return len(waiting)
