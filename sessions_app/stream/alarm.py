"""Noticing that something was committed, on either database, without holding a transaction."""

import asyncio
import contextlib
import logging
from concurrent.futures import Executor
from typing import Any, Protocol

import psycopg
from django.db import connection

from sessions_app.stream.notify import CHANNEL

logger = logging.getLogger(__name__)

LOOK_EVERY = 0.05  # SQLite: how often the version is looked at
GATHER = 0.02  # PostgreSQL: how long notices are gathered before a read


class Alarm(Protocol):
    async def wait(self, timeout: float) -> set[str] | None:
        """The sessions that changed, or None for "any": after a commit, `ring`, or the timeout."""

    def ring(self) -> None: ...

    def stop(self) -> None: ...


class SqliteAlarm:
    """Looks at ``PRAGMA data_version``, on the tail's own connection: it counts others' commits."""

    def __init__(self, thread: Executor) -> None:
        self._thread = thread
        self._rung = asyncio.Event()
        self._version: int | None = None

    async def wait(self, timeout: float) -> set[str] | None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        while not self._rung.is_set() and loop.time() < deadline:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._rung.wait(), LOOK_EVERY)
            version = await loop.run_in_executor(self._thread, _data_version)
            if version != self._version:
                self._version = version
                break
        self._rung.clear()
        return None

    def ring(self) -> None:
        self._rung.set()

    def stop(self) -> None:
        pass


class PostgresAlarm:
    """Listens to `sessions_app.stream.notify`, on a connection of its own outside the pool."""

    def __init__(self) -> None:
        self._heard = asyncio.Event()
        self._ids: set[str] | None = set()
        self._listening = asyncio.create_task(self._listen())

    async def wait(self, timeout: float) -> set[str] | None:
        try:
            await asyncio.wait_for(self._heard.wait(), timeout)
        except TimeoutError:
            return None
        await asyncio.sleep(GATHER)
        self._heard.clear()
        ids, self._ids = self._ids, set()
        return ids

    def ring(self) -> None:
        self._ids = None
        self._heard.set()

    def stop(self) -> None:
        self._listening.cancel()

    async def _listen(self) -> None:
        pause = 1.0
        while True:
            try:
                async with await psycopg.AsyncConnection.connect(
                    **_listening_params(), autocommit=True
                ) as listening:
                    await listening.execute(f"LISTEN {CHANNEL}")
                    pause = 1.0
                    self.ring()  # what was committed before we listened
                    async for notice in listening.notifies():
                        self._hear(notice.payload)
            except psycopg.Error as error:
                # Nothing is lost meanwhile: the tail looks every few seconds whatever it hears.
                logger.warning("Not listening to the database, again in %.0f s: %s", pause, error)
            await asyncio.sleep(pause)
            pause = min(pause * 2, 15.0)

    def _hear(self, session_id: str) -> None:
        if self._ids is not None:
            self._ids.add(session_id)
        self._heard.set()


def alarm(thread: Executor) -> Alarm:
    """The alarm for the database in use; ``thread`` holds the tail's connection."""
    return PostgresAlarm() if connection.vendor == "postgresql" else SqliteAlarm(thread)


def _data_version() -> int:
    connection.ensure_connection()
    # Below Django's cursor: twenty looks a second are not to show as queries.
    return int(connection.connection.execute("PRAGMA data_version").fetchone()[0])


def _listening_params() -> dict[str, Any]:
    params = connection.get_connection_params()
    for ours in ("cursor_factory", "context", "prepare_threshold"):
        params.pop(ours, None)
    return params
