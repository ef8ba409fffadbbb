"""A worker tells that it is there, every few seconds, in a row that pages read."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import threading
import tomllib
from contextlib import suppress
from pathlib import Path

from channels.db import database_sync_to_async
from django.conf import settings
from django.db import DatabaseError
from django.utils import timezone

from dexweb.engine.slots import SlotCount
from sessions_app.models import WorkerPresence

log = logging.getLogger(__name__)

EVERY = 5.0
FAREWELL = 2.0


class Presence:
    """What one worker process says of itself."""

    def __init__(
        self, identity: str, pool: str, models: SlotCount, calls: SlotCount, stop: asyncio.Event
    ) -> None:
        self._identity, self._pool = identity[:160], pool
        self._models, self._calls, self._stop = models, calls, stop
        # Whoever left writes nothing more, even if a thread was about to.
        self._writing, self._left = threading.Lock(), False
        self._started, self._version = timezone.now(), own_version()
        # A thread of its own: Steps need the worker's database thread.
        self._tell = database_sync_to_async(self._write, thread_sensitive=False)
        self._forget = database_sync_to_async(self._delete, thread_sensitive=False)

    async def tell(self) -> None:
        """The row as of now; those of workers long gone are forgotten."""
        await self._tell()

    async def leave(self) -> None:
        """A worker that ends in order leaves no row behind."""
        with suppress(DatabaseError, TimeoutError):
            await asyncio.wait_for(self._forget(), FAREWELL)

    def _write(self) -> None:
        with self._writing:
            if not self._left:
                self._store()

    def _store(self) -> None:
        WorkerPresence.objects.update_or_create(
            id=self._identity,
            defaults={
                "pool": self._pool,
                "host": socket.gethostname()[:100],
                "pid": os.getpid(),
                "version": self._version,
                "deployment": settings.DEXWEB_WORKER_VERSION[:100],
                "model_slots": self._models.slots,
                "model_used": self._models.used,
                "tool_slots": self._calls.slots,
                "tool_used": self._calls.used,
                "stopping": self._stop.is_set(),
                "started_at": self._started,
                "seen_at": timezone.now(),
            },
        )
        WorkerPresence.objects.forgotten().delete()

    def _delete(self) -> None:
        with self._writing:
            self._left = True
            WorkerPresence.objects.filter(pk=self._identity).delete()


async def report_forever(presence: Presence) -> None:
    """Whatever goes wrong once is told the next time."""
    while True:
        try:
            await presence.tell()
        except Exception:
            log.exception("this worker could not say that it is there")
        await asyncio.sleep(EVERY)


def own_version() -> str:
    """The worker version that sessions are bound to, where one is set, else that of the code."""
    if settings.DEXWEB_WORKER_VERSION:
        return str(settings.DEXWEB_WORKER_VERSION)[:100]
    with suppress(OSError, ValueError, KeyError):
        project = tomllib.loads((Path(settings.BASE_DIR) / "pyproject.toml").read_text())
        return str(project["project"]["version"])[:100]
    return ""
