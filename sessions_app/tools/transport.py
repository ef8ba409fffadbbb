"""How a connection's server is started or reached, and where its secret goes."""

import logging
import os
import shutil
import sys
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import httpx2
from fastmcp.client import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from mcp import types

from sessions_app.tools.definitions import ConnectionSpec, ConnectionUnavailable
from sessions_app.tools.http_watch import HttpWatch
from sessions_app.tools.redaction import redact

CREDENTIAL_PLACEHOLDER = "${credential}"
CREDENTIAL_VARIABLE = "DEXWEB_CREDENTIAL"

#: All of our own environment that a child gets; the rest, our secrets among it, stays here.
INHERITED_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "PYTHONPATH")

#: Connecting takes a Python child about a second; a busy machine may need much longer.
CONNECT_TIMEOUT_SECONDS = 30
#: Reading waits as long as the call does: how long a tool may take is the caller's decision.
_HTTP_TIMEOUT = httpx2.Timeout(10, read=None)
_MAX_EVENT_BYTES = 8 * 1024 * 1024

#: Called with each notification of a server, or with an error of its stream.
OnNotice = Callable[[types.ServerNotification | Exception], Awaitable[None]]

logger = logging.getLogger(__name__)


def build_client(
    spec: ConnectionSpec, errors: "ErrorTail", watch: HttpWatch, on_notice: OnNotice
) -> Client:
    """An MCP client for the spec, not yet connected. A child's stderr goes to `errors`, what the
    server tells unasked to `on_notice`.

    Raises `ConnectionUnavailable` where the spec itself cannot work.
    """
    transport = _stdio(spec, errors) if spec.transport == "stdio" else _http(spec, watch)
    return Client(
        transport,
        init_timeout=CONNECT_TIMEOUT_SECONDS,
        message_handler=on_notice,
        client_info=types.Implementation(name="dexweb", version="1"),
    )


def child_environment(spec: ConnectionSpec) -> dict[str, str]:
    """The whole environment of a stdio server: a few harmless variables of ours, then its own."""
    inherited = {name: os.environ[name] for name in INHERITED_VARIABLES if name in os.environ}
    own, placed = _with_secret(spec.env, spec.secret)
    if spec.secret and not placed:
        own[CREDENTIAL_VARIABLE] = spec.secret
    return inherited | own


def request_headers(spec: ConnectionSpec) -> dict[str, str]:
    """The headers sent with every request to an HTTP server."""
    headers, placed = _with_secret(spec.headers, spec.secret)
    if spec.secret and not placed:
        headers["Authorization"] = f"Bearer {spec.secret}"
    return headers


def resolve_program(program: str) -> str:
    """Where a command's program is: `python` is ours, a bare name is looked for beside it, then on
    PATH.

    Raises `ConnectionUnavailable` where there is none.
    """
    if program == "python":
        return sys.executable
    if os.sep in program:
        return program
    beside = Path(sys.executable).parent / program
    if beside.is_file() and os.access(beside, os.X_OK):
        return str(beside)
    found = shutil.which(program)
    if found is None:
        raise ConnectionUnavailable(f"There is no program {program!r} beside Python or on PATH.")
    return found


class ErrorTail:
    """Reads a child's stderr: each line goes to the log at debug level, the last few are kept for
    errors, both without the secret.
    """

    def __init__(self, name: str, secret: str = "", lines: int = 12) -> None:
        self._name = name
        self._secret = secret
        self._lines: deque[str] = deque(maxlen=lines)
        read_end, write_end = os.pipe()
        self.file = os.fdopen(write_end, "w")
        self._thread = threading.Thread(
            target=self._read, args=(read_end,), name=f"stderr-{name}", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Closes our end; the reader ends with the last process that holds the other."""
        if not self.file.closed:
            self.file.close()

    def text(self) -> str:
        """The last lines, after a moment in which a dead child's last words can arrive."""
        self.close()
        self._thread.join(timeout=0.2)
        return "\n".join(self._lines)

    def _read(self, read_end: int) -> None:
        with os.fdopen(read_end, "r", errors="replace") as stream:
            for line in stream:
                clean = redact(line.rstrip(), self._secret)
                self._lines.append(clean[:500])
                logger.debug("%s: %s", self._name, clean)


def _stdio(spec: ConnectionSpec, errors: ErrorTail) -> StdioTransport:
    if not spec.command:
        raise ConnectionUnavailable(f"The connection {spec.name} has no command to start.")
    return StdioTransport(
        command=resolve_program(spec.command[0]),
        args=list(spec.command[1:]),
        env=child_environment(spec),
        cwd=spec.cwd or None,
        keep_alive=False,
        log_file=errors.file,
    )


def _http(spec: ConnectionSpec, watch: HttpWatch) -> StreamableHttpTransport:
    if not spec.url.startswith(("http://", "https://")):
        raise ConnectionUnavailable(f"The connection {spec.name} has no http or https address.")
    return StreamableHttpTransport(
        spec.url,
        headers=request_headers(spec),
        httpx_client_factory=watch.client_factory(timeout=_HTTP_TIMEOUT),
        max_sse_event_size=_MAX_EVENT_BYTES,
    )


def _with_secret(values: Mapping[str, str], secret: str) -> tuple[dict[str, str], bool]:
    """The values with the secret put in, and whether it had a place in any of them."""
    filled = {}
    placed = False
    for name, value in values.items():
        placed = placed or CREDENTIAL_PLACEHOLDER in str(value)
        filled[str(name)] = str(value).replace(CREDENTIAL_PLACEHOLDER, secret)
    return filled, placed
