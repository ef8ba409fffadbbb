"""Notes how far each tool call came over HTTP.

The MCP client says of every failed request no more than that it failed. Whether the call may have
run is what decides its outcome, so we look one level below: could the server be reached, and what
status did it answer with?
"""

import json
from collections.abc import Callable
from typing import Any, Literal

import httpx2

from sessions_app.tools.definitions import CALL_ID_META

Reached = Literal["not_sent", "refused", "broken", "answered"]

_NEVER_SENT = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.UnsupportedProtocol,
    httpx2.ProxyError,
)
#: The server, or a gate before it, turned the request away without acting on it.
_REFUSED = frozenset({401, 403, 404, 405, 407, 421, 426, 429})


class HttpWatch:
    """What became of the calls of one connection, by call id.

    `last_problem` says in words why the last request failed, of whatever kind it was.
    """

    def __init__(self) -> None:
        self._reached: dict[str, tuple[Reached, str]] = {}
        self.last_problem = ""

    def client_factory(self, **timeouts: Any) -> Callable[..., httpx2.AsyncClient]:
        """Builds the HTTP client whose requests are watched."""

        def build(**options: Any) -> httpx2.AsyncClient:
            return _WatchedClient(self, **(options | timeouts))

        return build

    def take(self, call_id: str) -> tuple[Reached, str]:
        """How far the call came, in a word and in words; forgotten afterwards."""
        return self._reached.pop(call_id, ("broken", ""))

    def note_status(self, call_id: str, status: int) -> None:
        """The server answered."""
        if status < 400:
            self._reached[call_id] = ("answered", "")
            return
        words = self.last_problem = f"it answered HTTP {status}"
        if status in _REFUSED:
            self._reached[call_id] = ("refused", words)
        else:
            self._reached[call_id] = ("broken" if status >= 500 else "answered", words)

    def note_error(self, call_id: str, error: Exception) -> None:
        """The request failed below HTTP."""
        reached: Reached = "not_sent" if isinstance(error, _NEVER_SENT) else "broken"
        words = self.last_problem = str(error) or type(error).__name__
        self._reached[call_id] = (reached, words)


class _WatchedClient(httpx2.AsyncClient):
    def __init__(self, watch: HttpWatch, **options: Any) -> None:
        super().__init__(**options)
        self._watch = watch

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        call_id = _call_id_of(request)
        try:
            response = await super().send(request, **options)
        except Exception as error:
            self._watch.note_error(call_id, error)
            raise
        self._watch.note_status(call_id, response.status_code)
        return response


def _call_id_of(request: httpx2.Request) -> str:
    """The call id in a `tools/call`; empty for every other request."""
    try:
        message = json.loads(request.content)
    except (ValueError, httpx2.RequestNotRead):
        return ""
    if not isinstance(message, dict) or message.get("method") != "tools/call":
        return ""
    return str(message.get("params", {}).get("_meta", {}).get(CALL_ID_META, ""))
