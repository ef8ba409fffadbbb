"""What a worker looks after beside its Steps: kept decisions, sessions that ended unseen, and news of
approvals that somebody is to be told; and an audit log that is not kept for ever.
"""

import asyncio
import logging

from channels.db import database_sync_to_async as in_database

from approvals_app import outbox
from approvals_app.audit_prune import prune_kept
from approvals_app.notify import outbox as notifications
from dexweb.engine.errors import EngineUnavailable
from sessions_app.reconcile import reconcile_some

log = logging.getLogger(__name__)

EVERY = 2.0
RECONCILE_EVERY = 15
FORGET_EVERY = 300
AT_ONCE = 4
PRUNE_EVERY = 60.0


async def sweep_forever() -> None:
    """All of it, until it is canceled. A slow mail server or webhook keeps no decision waiting."""
    await asyncio.gather(decisions_forever(), notifications_forever(), prune_forever())


async def decisions_forever() -> None:
    """Sweep again and again; whatever goes wrong once is tried again."""
    # A thread of its own: the Steps that a delivery wakes need the worker's database thread.
    sweep_once = in_database(outbox.sweep, thread_sensitive=False)
    reconcile_once = in_database(reconcile_some, thread_sensitive=False)
    rounds, place = 0, ""
    while True:
        try:
            await sweep_once()
            # A round that is not through goes on at once; only whole rounds lie half a minute apart.
            if place or rounds % RECONCILE_EVERY == 0:
                place = await reconcile_once(place)
        except EngineUnavailable:
            log.info("the engine is away; the sweep goes on later")
        except Exception:
            log.exception("the sweep did not get through")
        rounds += 1
        await asyncio.sleep(EVERY)


async def notifications_forever() -> None:
    """Send what is due, a few at once, and again; what fails is tried again later."""
    prepare = in_database(notifications.prepare, thread_sensitive=False)
    forget = in_database(notifications.forget_old, thread_sensitive=False)
    deliver = in_database(notifications.deliver, thread_sensitive=False)
    free = asyncio.Semaphore(AT_ONCE)

    async def deliver_one(delivery_id: str) -> None:
        async with free:
            await deliver(delivery_id)

    rounds = 0
    while True:
        try:
            due = await prepare()
            await asyncio.gather(*map(deliver_one, due), return_exceptions=True)
            if rounds % FORGET_EVERY == 0:
                await forget()
        except Exception:
            log.exception("notifications could not be sent")
        rounds += 1
        await asyncio.sleep(EVERY)


async def prune_forever() -> None:
    """The oldest entries of the audit log, some at a time, when the settings say how long it is kept."""
    prune_once = in_database(prune_kept, thread_sensitive=False)
    while True:
        try:
            await prune_once()
        except Exception:
            log.exception("the audit log was not pruned")
        await asyncio.sleep(PRUNE_EVERY)
