"""The door to tools: list a connection's tools, call one, check arguments.

`list_tools` and `call_tool` open a connection for one use and leave nothing behind; `ToolPool`
keeps connections warm for a worker's many calls. Both raise only the errors of `definitions`.
"""

from collections.abc import Mapping
from typing import Any

from sessions_app.tools.connection import Connection
from sessions_app.tools.definitions import (
    ConnectionLost,
    ConnectionSpec,
    ConnectionUnavailable,
    ConnectionUnusable,
    OnProgress,
    ToolCallError,
    ToolDef,
    ToolRaised,
    ToolResult,
    ToolTimedOut,
)
from sessions_app.tools.pool import ToolPool
from sessions_app.tools.schemas import validate_args

__all__ = [
    "ConnectionLost",
    "ConnectionSpec",
    "ConnectionUnavailable",
    "ConnectionUnusable",
    "OnProgress",
    "ToolCallError",
    "ToolDef",
    "ToolPool",
    "ToolRaised",
    "ToolResult",
    "ToolTimedOut",
    "call_tool",
    "list_tools",
    "validate_args",
]


async def list_tools(spec: ConnectionSpec) -> list[ToolDef]:
    """The tools of a connection, opened and closed for this. Raises `ConnectionUnavailable`."""
    connection = Connection(spec)
    try:
        await connection.open()
        return await connection.list_tools()
    finally:
        await connection.close()


async def call_tool(
    spec: ConnectionSpec,
    tool: str,
    args: Mapping[str, Any],
    call_id: str,
    on_progress: OnProgress | None = None,
    timeout: float | None = None,
) -> ToolResult:
    """One call over a connection of its own; see `Connection.call_tool` for the errors.

    Cancelling it ends the server's process before the cancellation goes on.
    """
    connection = Connection(spec)
    try:
        await connection.open()
        return await connection.call_tool(tool, args, call_id, on_progress, timeout)
    finally:
        await connection.close()
