"""What every socket does: sign-in, pings, idleness, closing with a code."""

import asyncio
import contextlib
import json
import logging
import time
from typing import Any

from channels.db import database_sync_to_async
from django.conf import settings
from django.contrib.auth.models import AbstractUser
from django.utils import timezone

from dexweb.engine.errors import SessionNotFound
from sessions_app.stream.access import admit, credential_of, doorkeeper
from sessions_app.stream.closing import BAD_MESSAGE, IDLE, NOT_FOUND, SERVER_ERROR, Closed

logger = logging.getLogger(__name__)

PROTOCOL = 1
LONGEST_MESSAGE = 4096


class Socket:
    """One WebSocket, as an ASGI application: `Kind.app` is the route's callable.

    A subclass names the ``permission`` that watching needs and writes `serve`, which sends until
    it is cancelled; `received` gets each message of the client.
    """

    permission: str

    def __init__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        self.scope = scope
        self.kwargs: dict[str, str] = scope["url_route"]["kwargs"]
        self.user: AbstractUser
        self._receive = receive
        self._send = send
        self._credential = credential_of(scope)
        self._heard = time.monotonic()

    @classmethod
    async def app(cls, scope: dict[str, Any], receive: Any, send: Any) -> None:
        await cls(scope, receive, send).run()

    async def run(self) -> None:
        await self._receive()
        # Accepted whoever asks: only an open socket can tell a browser why it is closed.
        await self._send({"type": "websocket.accept"})
        code = await self._until_closed()
        if code is not None:
            await self._send({"type": "websocket.close", "code": code})

    async def serve(self) -> None:
        raise NotImplementedError

    def received(self, message: dict[str, Any]) -> None:
        """A message of the client; unknown types are ignored."""

    async def admitted(self) -> None:
        """Called with a fresh ``self.user``, at the start and after each later check."""

    async def send(self, text: str) -> None:
        await self._send({"type": "websocket.send", "text": text})

    async def say(self, kind: str, **fields: Any) -> None:
        await self.send(json.dumps({"type": kind, **fields}))

    async def hello(self, **fields: Any) -> None:
        await self.say("hello", protocol=PROTOCOL, server_time=timezone.now().isoformat(), **fields)

    async def _until_closed(self) -> int | None:
        tasks: list[asyncio.Task[None]] = []
        try:
            self.user = await database_sync_to_async(admit)(self._credential, self.permission)
            await self.admitted()
            tasks = [
                asyncio.create_task(part) for part in (self._listen(), self._guard(), self.serve())
            ]
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        except Closed as closed:
            return closed.code
        except SessionNotFound:
            return NOT_FOUND
        except Exception:
            logger.exception("A socket failed")
            return SERVER_ERROR
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return None

    async def _listen(self) -> None:
        while True:
            message = await self._receive()
            if message["type"] == "websocket.disconnect":
                raise Closed(None)
            self.received(_parsed(message.get("text")))
            self._heard = time.monotonic()

    async def _guard(self) -> None:
        """Pings, closes an idle socket, and asks again whether this user may still watch."""
        ping_every = settings.DEXWEB_SOCKET_PING
        check_every = settings.DEXWEB_SOCKET_RECHECK
        idle_after = settings.DEXWEB_SOCKET_IDLE
        pinged = checked = time.monotonic()
        while True:
            await asyncio.sleep(min(ping_every, check_every, idle_after / 2))
            now = time.monotonic()
            if now - self._heard > idle_after:
                raise Closed(IDLE)
            if now - pinged >= ping_every:
                pinged = now
                await self.say("ping")
            if now - checked >= check_every:
                checked = now
                self.user = await doorkeeper.still_admitted(self._credential, self.permission)
                await self.admitted()


async def no_such_socket(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """For an address that is not in the table."""
    await receive()
    await send({"type": "websocket.accept"})
    await send({"type": "websocket.close", "code": NOT_FOUND})


def _parsed(text: str | None) -> dict[str, Any]:
    if text is None or len(text) > LONGEST_MESSAGE:
        raise Closed(BAD_MESSAGE)
    message = None
    with contextlib.suppress(ValueError, RecursionError):
        message = json.loads(text)
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):
        raise Closed(BAD_MESSAGE)
    return message
