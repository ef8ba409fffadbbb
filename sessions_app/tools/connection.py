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

from fastmcp.client import Client
from fastmcp.exceptions import McpError
from mcp import types
from pydantic_ai.mcp import MCPToolset

from sessions_app.tools.definitions import (
    CALL_ID_META,
    ConnectionLost,
    ConnectionSpec,
    ConnectionUnavailable,
    OnProgress,
    ToolCallError,
    ToolDef,
    ToolRaised,
    ToolResult,
    ToolTimedOut,
)
from sessions_app.tools.http_watch import HttpWatch
from sessions_app.tools.redaction import redact, redact_value
from sessions_app.tools.results import to_tool_result
from sessions_app.tools.transport import CONNECT_TIMEOUT_SECONDS, ErrorTail, build_client

_CONNECTION_CODES = {types.CONNECTION_CLOSED, types.REQUEST_TIMEOUT}
_UNSAFE_IN_NAME = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME = 64
#: How long a list of tools is taken as known: few servers tell of a change without being asked.
LIST_GOOD_FOR_SECONDS = 10.0


class Connection:
    """An MCP session that many tasks may call at once. Open it once, close it once; it does not
    reopen.
    """

    def __init__(self, spec: ConnectionSpec) -> None:
        self.spec = spec
        self.in_flight = 0
        self.last_used = time.monotonic()
        self._toolset: MCPToolset[None] | None = None
        self._errors = ErrorTail(spec.name, spec.secret)
        self._watch = HttpWatch()
        self._stop = asyncio.Event()
        self._ready: asyncio.Future[None] | None = None
        self._owner: asyncio.Task[None] | None = None
        self._own_names: dict[str, str] = {}
        self._known: list[ToolDef] | None = None
        self._known_until = 0.0
        self._notices = 0
        self._broken = False

    @property
    def _is_stdio(self) -> bool:
        return self.spec.transport == "stdio"

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
        """Starts or reaches the server. Raises `ConnectionUnavailable` with why."""
        self._ready = asyncio.get_running_loop().create_future()
        self._owner = asyncio.create_task(self._own(), name=f"mcp-{self.spec.name}")
        await asyncio.shield(self._ready)

    async def close(self) -> None:
        """Ends the session and a stdio server's process; waits for it even when canceled."""
        self._stop.set()
        if self._owner is not None:
            if self._ready is not None and not self._ready.done():
                self._owner.cancel()
            await _finish(self._owner)
        self._errors.close()

    def retire(self) -> None:
        """Takes no new calls from now on; what is in flight may finish."""
        self._broken = True

    async def known_tools(self) -> list[ToolDef]:
        """The server's tools as last listed, for ten seconds or until it tells of a change."""
        if self._known is not None and time.monotonic() < self._known_until:
            return self._known
        return await self.list_tools()

    async def list_tools(self) -> list[ToolDef]:
        """The server's tools as they are now. Raises `ConnectionUnavailable`: nothing ran either way."""
        assert self._toolset is not None, "open the connection first"
        asked_at, notices = time.monotonic(), self._notices
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_SECONDS):
                tools = await self._toolset.list_tools()
        except Exception as error:
            self.retire()
            raise self._unavailable(error) from None
        definitions = [to_tool_def(self.spec.name, tool, self.spec.secret) for tool in tools]
        self._own_names = {definition.name: definition.tool for definition in definitions}
        # A change that was told while the answer was on its way may not be in it.
        self._known = definitions if notices == self._notices else None
        self._known_until = asked_at + LIST_GOOD_FOR_SECONDS
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

        The call id goes along as `_meta["dexweb/call_id"]`, so that a tool can make itself
        idempotent. `timeout` is in seconds. Raises `ToolRaised`, `ConnectionUnavailable` (nothing
        was sent), `ConnectionLost` or `ToolTimedOut` (it may have run).
        """
        if not self.usable:
            raise ConnectionUnavailable(f"The connection {self.spec.name} is closed.")
        assert self._toolset is not None
        self.in_flight += 1
        try:
            own_name = await self._own_name(tool)
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
            result = await client.call_tool_mcp(
                own_name,
                _plain(args),
                progress_handler=self._listener(on_progress),
                meta={CALL_ID_META: call_id},
            )
        except Exception as error:
            raise self._call_failed(error, call_id) from None
        self._watch.take(call_id)
        return result

    def _listener(self, on_progress: OnProgress | None) -> OnProgress | None:
        """The same, told nothing of the secret."""
        if on_progress is None:
            return None
        tell = on_progress

        async def cleaned(done: float, total: float | None, words: str | None) -> None:
            await tell(done, total, words and redact(words, self.spec.secret))

        return cleaned

    def _call_failed(self, error: Exception, call_id: str) -> ToolCallError:
        """What a failed request means: did the server refuse it, never see it, or maybe run it?"""
        leaf = _leaf(error)
        reached, words = ("answered", "") if self._is_stdio else self._watch.take(call_id)
        if reached in ("not_sent", "refused"):
            self.retire()
            return self._unavailable(RuntimeError(words))
        is_answer = isinstance(leaf, McpError) and leaf.error.code not in _CONNECTION_CODES
        if reached == "answered" and is_answer:
            return ToolRaised(self._clean(str(leaf)))
        self.retire()
        return self._lost(RuntimeError(words) if words else error)

    def _as_result(self, tool: str, raw: types.CallToolResult) -> ToolResult:
        result = to_tool_result(raw, self.spec.secret)
        if result.is_error:
            raise ToolRaised(result.text or f"{tool} failed and did not say why.")
        return result

    async def _own_name(self, tool: str) -> str:
        """The server's name for a tool; one changed for providers is found by listing."""
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
            client = build_client(self.spec, self._errors, self._watch, self._noticed)
            async with MCPToolset[None](client, cache_tools=False) as toolset:
                client.session.validate_tool_result = _accept  # type: ignore[method-assign]
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

    async def _noticed(self, message: types.ServerNotification | Exception) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._notices += 1
            self._known = None

    def _closed_by_peer(self) -> bool:
        """Whether the server's end is known to be gone, asked without sending anything."""
        transport = self._toolset.client.transport if self._toolset is not None else None
        is_dead = getattr(transport, "_is_session_dead", None)
        return bool(is_dead is not None and is_dead())

    def _unavailable(self, error: BaseException) -> ConnectionUnavailable:
        if isinstance(error, ConnectionUnavailable):
            return error
        what = "started" if self._is_stdio else "reached"
        return ConnectionUnavailable(f"{self.spec.name} could not be {what}: {self._why(error)}")

    def _lost(self, error: BaseException) -> ConnectionLost:
        return ConnectionLost(
            f"The connection to {self.spec.name} broke during the call, which may have run:"
            f" {self._why(error)}"
        )

    def _why(self, error: BaseException) -> str:
        leaf = _leaf(error)
        said = self._errors.text() if self._is_stdio else ""
        words = str(leaf).strip() or type(leaf).__name__
        if not self._is_stdio and self._watch.last_problem not in words:
            words = f"{words} ({self._watch.last_problem})"
        return self._clean(f"{words}\n{said}" if said else words)

    def _clean(self, text: str) -> str:
        return redact(text, self.spec.secret)[:2000]


async def _accept(name: str, result: types.CallToolResult) -> None:
    """Stands for the SDK's check of a result against the tool's output schema.

    It would raise after the tool ran, and hide from the model and from people what it answered.
    """


def to_tool_def(connection: str, tool: types.Tool, secret: str = "") -> ToolDef:
    """The tool as a model sees it, under a name every provider takes, cleaned of the secret."""
    hints = tool.annotations
    return ToolDef(
        name=_provider_name(connection, tool.name),
        description=redact(tool.description or "", secret),
        schema=redact_value(tool.input_schema, secret),
        tool=tool.name,
        connection=connection,
        title=redact(tool.title or (hints.title if hints else None) or "", secret),
        read_only_hint=hints.read_only_hint if hints else None,
        destructive_hint=hints.destructive_hint if hints else None,
        idempotent_hint=hints.idempotent_hint if hints else None,
    )


def _provider_name(connection: str, tool: str) -> str:
    """`<connection>__<tool>`; where that does not fit, changed, with digits to stay distinct."""
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
