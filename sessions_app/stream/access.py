"""Who is behind a socket, asked when it opens and again while it is open, by the same function."""

import asyncio
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

from channels.db import database_sync_to_async
from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.auth.models import AbstractUser
from django.http import HttpRequest
from rest_framework.authentication import TokenAuthentication
from rest_framework.exceptions import AuthenticationFailed

from sessions_app.stream.closing import NOT_ALLOWED, SIGNED_OUT, Closed

SHARED_FOR = 2.0


@dataclass(frozen=True)
class Credential:
    """What a socket came with: the key of a signed-in browser's session, or an API token."""

    kind: Literal["cookie", "token"]
    key: str


def credential_of(scope: dict[str, Any]) -> Credential | None:
    """A token in the Authorization header counts before the cookie, as it does in REST."""
    for name, value in scope["headers"]:
        if name == b"authorization":
            scheme, _, key = value.decode("latin1").partition(" ")
            if scheme.lower() == "token":
                return Credential("token", key.strip())
    key = scope["cookies"].get(settings.SESSION_COOKIE_NAME)
    return Credential("cookie", key) if key else None


def admit(credential: Credential | None, permission: str) -> AbstractUser:
    """The active user behind ``credential``, if allowed. Raises `Closed` with the code."""
    user = _user(credential)
    if user is None:
        raise Closed(SIGNED_OUT)
    if not user.has_perm(permission):
        raise Closed(NOT_ALLOWED)
    return user


class Doorkeeper:
    """Asks `admit` again, once for all sockets of one credential at about the same time."""

    def __init__(self) -> None:
        self._asked: dict[tuple[Any, ...], tuple[float, asyncio.Task[AbstractUser]]] = {}

    async def still_admitted(self, credential: Credential | None, permission: str) -> AbstractUser:
        loop = asyncio.get_running_loop()
        now = loop.time()
        self._asked = {key: asked for key, asked in self._asked.items() if asked[0] > now}
        key = (id(loop), credential, permission)
        if key not in self._asked:
            task = asyncio.ensure_future(database_sync_to_async(admit)(credential, permission))
            task.add_done_callback(_heard)
            self._asked[key] = (now + SHARED_FOR, task)
        # One socket that leaves must not cancel the question of the others.
        return await asyncio.shield(self._asked[key][1])


doorkeeper = Doorkeeper()


def _heard(task: asyncio.Task[AbstractUser]) -> None:
    """A refusal is nobody's error, also when all who asked have left meanwhile."""
    if not task.cancelled():
        task.exception()


def _user(credential: Credential | None) -> AbstractUser | None:
    if credential is None:
        return None
    if credential.kind == "token":
        try:
            return TokenAuthentication().authenticate_credentials(credential.key)[0]
        except AuthenticationFailed:
            return None
    request = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(credential.key)
    user = get_user(request)
    return user if user.is_authenticated else None
