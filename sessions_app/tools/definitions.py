"""The words of tool calls: connections, tools, results, and how a call can go wrong."""

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

#: The call id rides in a request's `_meta` under this name, so that a tool can be idempotent by it.
CALL_ID_META = "dexweb/call_id"

#: Called for each progress note of a tool: done so far, of how much (or None), in words (or None).
OnProgress = Callable[[float, float | None, str | None], Awaitable[None]]


@dataclass(frozen=True)
class ConnectionSpec:
    """How to reach one MCP server.

    `${credential}` inside a value of `env` or `headers` stands for the secret. Where it stands
    nowhere, an HTTP server gets `Authorization: Bearer <secret>` and a child process
    `DEXWEB_CREDENTIAL`. `cwd` is where a child starts; empty means where we run.
    """

    name: str
    transport: Literal["stdio", "http"]
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    secret: str = field(default="", repr=False)
    cwd: str = ""

    def key(self) -> str:
        """A digest of everything that makes two connections different, the secret included."""
        parts = [
            self.name,
            self.transport,
            list(self.command),
            sorted(self.env.items()),
            self.url,
            sorted(self.headers.items()),
            self.secret,
            self.cwd,
        ]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


@dataclass(frozen=True)
class ToolDef:
    """One tool as a model sees it.

    `name` is `<connection>__<tool>`, made of letters, digits, `_` and `-`, at most 64 characters,
    since providers take no others; `tool` is the server's own name. The hints are the server's word
    for itself, None where it says nothing: show them, but let no policy rest on them.
    """

    name: str
    description: str
    schema: Mapping[str, Any]
    tool: str = ""
    connection: str = ""
    title: str = ""
    read_only_hint: bool | None = None
    destructive_hint: bool | None = None
    idempotent_hint: bool | None = None


@dataclass(frozen=True)
class ToolResult:
    """What a tool gave back.

    `text` is for model and person: text parts as they are, structured content as JSON, binary parts
    in words. `truncated` says that `text` was cut at `results.MAX_RESULT_BYTES`; `structured` is
    the server's structured content, None where it gave none. A tool's own error is raised, not
    returned, so `is_error` is False on every result `call_tool` returns.
    """

    text: str
    is_error: bool = False
    truncated: bool = False
    structured: Any = None


class ToolCallError(Exception):
    """A tool call that gave no result. `message` is in words and holds no secret.

    `retryable`: it may go better by itself.
    """

    retryable = True

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class ToolRaised(ToolCallError):
    """The tool answered with an error of its own, or the server refused the call as malformed."""


class ConnectionUnavailable(ToolCallError):
    """The server could not be started or reached before the call was sent: nothing ran."""


class ConnectionUnusable(ConnectionUnavailable):
    """The server was not asked, and will not be until somebody has mended its settings."""

    retryable = False


class ConnectionLost(ToolCallError):
    """The connection broke after the call was sent: it may have run, wholly or in part."""


class ToolTimedOut(ConnectionLost):
    """No answer within the time allowed. Like any lost connection: it may have run."""
