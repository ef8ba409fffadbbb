"""Keeps one warm connection per spec, so that a call does not start a process each time."""

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from sessions_app.tools.connection import Connection
from sessions_app.tools.definitions import (
    ConnectionSpec,
    ConnectionUnavailable,
    OnProgress,
    ToolDef,
    ToolResult,
)

IDLE_SECONDS = 300.0


class ToolPool:
    """Warm MCP connections of one process and one event loop.

    A connection found dead is dropped and opened anew at the next call; one unused for
    `idle_seconds` is closed. Call `aclose` before the loop ends. Errors are those of `definitions`.
    """

    def __init__(self, idle_seconds: float = IDLE_SECONDS) -> None:
        self._idle_seconds = idle_seconds
        self._connections: dict[str, Connection] = {}
        self._opening: dict[str, asyncio.Lock] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._sweeper: asyncio.Task[None] | None = None
        self._closed = False

    async def known_tools(self, spec: ConnectionSpec) -> list[ToolDef]:
        """The tools of a connection, ten seconds old at most. Raises `ConnectionUnavailable`."""
        return await (await self._connection(spec)).known_tools()

    async def list_tools(self, spec: ConnectionSpec) -> list[ToolDef]:
        """The tools of a connection as they are now. Raises `ConnectionUnavailable`."""
        return await (await self._connection(spec)).list_tools()

    async def call_tool(
        self,
        spec: ConnectionSpec,
        tool: str,
        args: Mapping[str, Any],
        call_id: str,
        on_progress: OnProgress | None = None,
        timeout: float | None = None,
    ) -> ToolResult:
        """Calls a tool over the warm connection; see `Connection.call_tool` for arguments and
        errors.

        A canceled call ends the server's process when it was the only one on it. Where others are
        in flight, they finish first: the server is told of the cancellation, gets no new call, and
        is closed after the last.
        """
        connection = await self._connection(spec)
        try:
            return await connection.call_tool(tool, args, call_id, on_progress, timeout)
        except asyncio.CancelledError:
            connection.retire()
            raise
        finally:
            if not connection.usable:
                await self._drop(spec.key(), connection)

    async def aclose(self) -> None:
        """Closes everything and waits until the servers' processes are gone."""
        self._closed = True
        if self._sweeper is not None:
            self._sweeper.cancel()
        for connection in list(self._connections.values()):
            self._close_later(connection)
        self._connections.clear()
        while self._closing:
            await asyncio.wait(set(self._closing))

    async def _connection(self, spec: ConnectionSpec) -> Connection:
        if self._closed:
            raise ConnectionUnavailable("The tool pool is closed.")
        key = spec.key()
        async with self._opening.setdefault(key, asyncio.Lock()):
            connection = self._connections.get(key)
            if connection is not None and connection.usable:
                connection.last_used = time.monotonic()
                return connection
            if connection is not None:
                await self._drop(key, connection)
            return await self._open(key, spec)

    async def _open(self, key: str, spec: ConnectionSpec) -> Connection:
        connection = Connection(spec)
        try:
            await connection.open()
        except BaseException:
            self._close_later(connection)
            raise
        self._connections[key] = connection
        if self._sweeper is None:
            self._sweeper = asyncio.create_task(self._sweep(), name="tool-pool-sweeper")
        return connection

    async def _drop(self, key: str, connection: Connection) -> None:
        """Forgets a connection, and closes it unless calls of others still run on it."""
        if self._connections.get(key) is connection:
            del self._connections[key]
        if connection.in_flight == 0:
            await asyncio.shield(self._close_later(connection))

    def _close_later(self, connection: Connection) -> asyncio.Task[None]:
        task = asyncio.create_task(connection.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
        return task

    async def _sweep(self) -> None:
        """Closes what has been idle too long."""
        while True:
            await asyncio.sleep(min(self._idle_seconds / 4, 30))
            oldest = time.monotonic() - self._idle_seconds
            for key, connection in list(self._connections.items()):
                if connection.in_flight == 0 and connection.last_used < oldest:
                    await self._drop(key, connection)
