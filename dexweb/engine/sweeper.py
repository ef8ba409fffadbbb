"""What a worker looks after beside its Steps: kept decisions, and sessions that ended unseen."""

import asyncio
import logging

from channels.db import database_sync_to_async as in_database

from approvals_app import outbox
from dexweb.engine.errors import EngineUnavailable
from sessions_app.reconcile import reconcile_some

log = logging.getLogger(__name__)

EVERY = 2.0
RECONCILE_EVERY = 15


async def sweep_forever() -> None:
    """Sweep again and again; whatever goes wrong once is tried again."""
    # A thread of its own: the Steps that a delivery wakes need the worker's database thread.
    sweep_once = in_database(outbox.sweep, thread_sensitive=False)
    reconcile_once = in_database(reconcile_some, thread_sensitive=False)
    rounds, place = 0, ""
    while True:
        try:
            await sweep_once()
            if rounds % RECONCILE_EVERY == 0:
                place = await reconcile_once(place)
        except EngineUnavailable:
            log.info("the engine is away; the sweep goes on later")
        except Exception:
            log.exception("the sweep did not get through")
        rounds += 1
        await asyncio.sleep(EVERY)
