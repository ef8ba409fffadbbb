"""One MCP connection, owned by a task of its own.

An MCP session must be left by the task that entered it, while calls come from any task: so one task
enters it, waits until it is told to stop, and leaves it; callers use the session in between.
"""

import asyncio
import hashlib
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from decimal import Decimal
from typing import Any

import httpx2
from fastmcp.client import Client
from fastmcp.exceptions import McpError
from mcp import types
from pydantic_ai.mcp import MCPToolset

from sessions_app.tools.definitions import (
    ConnectionLost,
    ConnectionSpec,
    ConnectionUnavailable,
    OnProgress,
    ToolDef,
    ToolRaised,
    ToolResult,
    ToolTimedOut,
)
from sessions_app.tools.redaction import redact
from sessions_app.tools.results import to_tool_result
from sessions_app.tools.transport import ErrorTail, build_client

CALL_ID_META = "dexweb/call_id"

_CONNECTION_CODES = {types.CONNECTION_CLOSED, types.REQUEST_TIMEOUT}
_UNSAFE_IN_NAME = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME = 64


class Connection:
    """An MCP session that many tasks may call at once. Open it once, close it once; it does not reopen."""

    def __init__(self, spec: ConnectionSpec) -> None:
        self.spec = spec
        self.in_flight = 0
        self.last_used = time.monotonic()
        self._toolset: MCPToolset[None] | None = None
        self._errors = ErrorTail(spec.name)
        self._stop = asyncio.Event()
        self._ready: asyncio.Future[None] | None = None
        self._owner: asyncio.Task[None] | None = None
        self._own_names: dict[str, str] = {}
        self._broken = False

    @property
    def usable(self) -> bool:
        """Whether a call may be sent: open, and nothing has shown it dead."""
        return (
            self._toolset is not None
            and not self._broken
            and not self._stop.is_set()
            and not self._closed_by_peer()
        )

    async def open(self) -> None:
        """Starts or reaches the server. Raises `ConnectionUnavailable` with why, and leaves nothing behind."""
        self._ready = asyncio.get_running_loop().create_future()
        self._owner = asyncio.create_task(self._own(), name=f"mcp-{self.spec.name}")
        await asyncio.shield(self._ready)

    async def close(self) -> None:
        """Ends the session and, for stdio, the server's process; waits for it even when cancelled meanwhile."""
        self._stop.set()
        if self._owner is not None:
            if self._ready is not None and not self._ready.done():
                self._owner.cancel()
            await _finish(self._owner)
        self._errors.close()

    def retire(self) -> None:
        """Takes no new calls from now on; what is in flight may finish."""
        self._broken = True

    async def list_tools(self) -> list[ToolDef]:
        """The server's tools. Raises `ConnectionUnavailable`: nothing ran either way."""
        assert self._toolset is not None, "open the connection first"
        try:
            tools = await self._toolset.list_tools()
        except Exception as error:
            self.retire()
            raise self._unavailable(error) from None
        definitions = [to_tool_def(self.spec.name, tool) for tool in tools]
        self._own_names = {definition.name: definition.tool for definition in definitions}
        return definitions

    async def call_tool(
        self,
        tool: str,
        args: Mapping[str, Any],
        call_id: str,
        on_progress: OnProgress | None = None,
        timeout: float | None = None,
    ) -> ToolResult:
        """Calls `tool` (its full name or the server's own) and returns what it gave.

        The call id goes along as `_meta["dexweb/call_id"]`, so that a tool can make itself idempotent.
        `timeout` is in seconds. Raises `ToolRaised`, `ConnectionUnavailable` (nothing was sent),
        `ConnectionLost` or `ToolTimedOut` (it may have run).
        """
        if not self.usable:
            raise ConnectionUnavailable(f"The connection {self.spec.name} is closed.")
        assert self._toolset is not None
        own_name = await self._own_name(tool)
        self.in_flight += 1
        try:
            async with asyncio.timeout(timeout):
                result = await self._send(
                    self._toolset.client, own_name, args, call_id, on_progress
                )
        except TimeoutError:
            self.retire()
            raise ToolTimedOut(f"{tool} gave no answer within {timeout:g} seconds.") from None
        finally:
            self.in_flight -= 1
            self.last_used = time.monotonic()
        return self._as_result(tool, result)

    async def _send(
        self,
        client: Client,
        own_name: str,
        args: Mapping[str, Any],
        call_id: str,
        on_progress: OnProgress | None,
    ) -> types.CallToolResult:
        try:
            return await client.call_tool_mcp(
                own_name,
                _plain(args),
                progress_handler=on_progress,
                meta={CALL_ID_META: call_id},
            )
        except McpError as error:
            if error.error.code in _CONNECTION_CODES:
                self.retire()
                raise self._lost(error) from None
            raise ToolRaised(self._clean(error.error.message)) from None
        except Exception as error:
            self.retire()
            if _never_sent(error):
                raise self._unavailable(error) from None
            raise self._lost(error) from None

    def _as_result(self, tool: str, raw: types.CallToolResult) -> ToolResult:
        result = to_tool_result(raw)
        text = redact(result.text, self.spec.secret)
        if result.is_error:
            raise ToolRaised(text or f"{tool} failed and did not say why.")
        return ToolResult(text=text, truncated=result.truncated, structured=result.structured)

    async def _own_name(self, tool: str) -> str:
        """The server's name for a tool; a name that had to be changed for providers is found by listing."""
        if tool in self._own_names:
            return self._own_names[tool]
        prefix = f"{self.spec.name}__"
        if not tool.startswith(prefix):
            return tool
        await self.list_tools()
        return self._own_names.get(tool, tool.removeprefix(prefix))

    async def _own(self) -> None:
        """Enters the session, keeps it until told to stop, leaves it: all in this task."""
        assert self._ready is not None
        try:
            toolset = MCPToolset[None](
                build_client(self.spec, self._errors), tool_error_behavior="error"
            )
            async with toolset:
                self._toolset = toolset
                self._ready.set_result(None)
                await self._stop.wait()
        except asyncio.CancelledError:
            if not self._ready.done():
                self._ready.cancel()
            raise
        except Exception as error:
            self._broken = True
            if not self._ready.done():
                self._ready.set_exception(self._unavailable(error))
        finally:
            self._toolset = None

    def _closed_by_peer(self) -> bool:
        """Whether the server's end is known to be gone, asked without sending anything."""
        transport = self._toolset.client.transport if self._toolset is not None else None
        is_dead = getattr(transport, "_is_session_dead", None)
        return bool(is_dead is not None and is_dead())

    def _unavailable(self, error: BaseException) -> ConnectionUnavailable:
        if isinstance(error, ConnectionUnavailable):
            return error
        what = "started" if self.spec.transport == "stdio" else "reached"
        return ConnectionUnavailable(f"{self.spec.name} could not be {what}: {self._why(error)}")

    def _lost(self, error: BaseException) -> ConnectionLost:
        return ConnectionLost(
            f"The connection to {self.spec.name} broke during the call, which may have run: {self._why(error)}"
        )

    def _why(self, error: BaseException) -> str:
        leaf = _leaf(error)
        said = self._errors.text() if self.spec.transport == "stdio" else ""
        words = str(leaf).strip() or type(leaf).__name__
        return self._clean(f"{words}\n{said}" if said else words)

    def _clean(self, text: str) -> str:
        return redact(text, self.spec.secret)[:2000]


def to_tool_def(connection: str, tool: types.Tool) -> ToolDef:
    """The tool as a model sees it, under a name every provider takes."""
    hints = tool.annotations
    return ToolDef(
        name=_provider_name(connection, tool.name),
        description=tool.description or "",
        schema=tool.input_schema,
        tool=tool.name,
        connection=connection,
        title=tool.title or (hints.title if hints else None) or "",
        read_only_hint=hints.read_only_hint if hints else None,
        destructive_hint=hints.destructive_hint if hints else None,
        idempotent_hint=hints.idempotent_hint if hints else None,
    )


def _provider_name(connection: str, tool: str) -> str:
    """`<connection>__<tool>`; where characters or length don't fit, a few digits keep it distinct."""
    plain = f"{connection}__{tool}"
    safe = _UNSAFE_IN_NAME.sub("_", plain)
    if safe == plain and len(plain) <= _LONGEST_NAME:
        return plain
    mark = hashlib.sha256(plain.encode()).hexdigest()[:6]
    return f"{safe[: _LONGEST_NAME - 7]}_{mark}"


def _plain(value: Any) -> Any:
    """Arguments as JSON numbers: a Decimal would otherwise travel as text."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Decimal):
        return (
            int(value)
            if value == value.to_integral_value() and "." not in str(value)
            else float(value)
        )
    return value


def _never_sent(error: BaseException) -> bool:
    """Whether the failure was in reaching the server, so that it cannot have seen the call."""
    return isinstance(
        _leaf(error), httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout
    )


def _leaf(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


async def _finish(task: asyncio.Task[None]) -> None:
    """Waits for a task's own end; a cancellation of the waiter is raised only after it."""
    canceled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(asyncio.wait({task}))
        except asyncio.CancelledError as error:
            canceled = error
    with suppress(asyncio.CancelledError, Exception):
        task.result()
    if canceled is not None:
        raise canceled
