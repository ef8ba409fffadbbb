"""A session, people who may or may not watch it, and sockets as their browsers open them."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from channels.db import database_sync_to_async
from channels.testing import WebsocketCommunicator
from django.conf import settings
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone

from dexweb.asgi import application
from sessions_app.models import Agent, Session
from sessions_app.projection import locked
from sessions_app.stream.append import append

PATIENCE = 30


def make_session(pk: str, **fields: Any) -> Session:
    agent, _ = Agent.objects.get_or_create(name="desk", defaults={"model": "demo:script"})
    now = timezone.now()
    return Session.objects.create(
        id=pk, agent=agent, title="A refund", created_at=now, updated_at=now, **fields
    )


def write(session_id: str, *texts: str, type: str = "tool.progress", step_id: str = "") -> None:
    """Append an event for each text, in one transaction, as Steps do."""
    with locked(session_id) as session:
        session.updated_at = timezone.now()
        for text in texts:
            append(session, type, {"text": text}, timezone.now(), step_id)


def allow(user: User, *codenames: str) -> User:
    ours = Permission.objects.filter(content_type__app_label__in=["sessions_app", "approvals_app"])
    user.user_permissions.add(*ours.filter(codename__in=codenames))
    return user


@pytest.fixture
def session(transactional_db: None) -> Session:
    return make_session("s-1")


@pytest.fixture
def watcher(transactional_db: None) -> User:
    user = User.objects.create_user("wanda", password="x")
    return allow(user, "view_session", "view_interrupt")


@pytest.fixture
def browser(watcher: User) -> Client:
    client = Client()
    client.force_login(watcher)
    return client


def cookie(client: Client) -> tuple[bytes, bytes]:
    name = settings.SESSION_COOKIE_NAME
    return b"cookie", f"{name}={client.cookies[name].value}".encode()


class Viewer:
    """A client that keeps what it is sent. It acknowledges unless it is told not to."""

    def __init__(self, socket: WebsocketCommunicator) -> None:
        self.socket = socket
        self.hello: dict[str, Any] = {}
        self.events: list[dict[str, Any]] = []
        self.frames: list[dict[str, Any]] = []

    async def next(self) -> dict[str, Any]:
        return await self.socket.receive_json_from(timeout=PATIENCE)

    async def say(self, **message: Any) -> None:
        await self.socket.send_json_to(message)

    async def until(self, seq: int, ack: bool = True) -> list[int]:
        """Read until event ``seq`` is here; answers with the numbers of all events so far."""
        while not self.events or self.events[-1]["seq"] < seq:
            frame = await self.next()
            if frame["type"] == "events":
                self.frames.append(frame)
                self.events += frame["events"]
                if ack:
                    await self.say(type="ack", seq=self.events[-1]["seq"])
        return [event["seq"] for event in self.events]

    async def quiet(self) -> bool:
        return await self.socket.receive_nothing(timeout=0.4)

    async def close_code(self) -> int:
        while True:
            output = await self.socket.receive_output(timeout=PATIENCE)
            if output["type"] == "websocket.close":
                return int(output["code"])


@asynccontextmanager
async def opened(path: str, *headers: tuple[bytes, bytes]) -> AsyncIterator[Viewer]:
    socket = WebsocketCommunicator(application, path, headers=list(headers))
    accepted, _ = await socket.connect(timeout=PATIENCE)
    assert accepted
    try:
        yield Viewer(socket)
    finally:
        await socket.disconnect(timeout=PATIENCE)


@pytest.fixture
def watch(browser: Client, session: Session) -> Callable[..., Any]:
    """Opens the session's events as Wanda, after a number, and reads the hello."""

    @asynccontextmanager
    async def watching(after: int = 0) -> AsyncIterator[Viewer]:
        async with opened(f"/ws/sessions/s-1/events?after={after}", cookie(browser)) as viewer:
            viewer.hello = await viewer.next()
            yield viewer

    return watching


in_database = database_sync_to_async
put = database_sync_to_async(write)


def size_of(frames: list[dict[str, Any]]) -> int:
    return sum(len(json.dumps(event)) for frame in frames for event in frame["events"])
