"""The whole way: a real server process, TCP, and a client that comes back after losing it."""

import asyncio
import contextlib
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from rest_framework.authtoken.models import Token

from sessions_app.models import Session
from tests.sessions_app.stream.conftest import cookie, put
from tests.sessions_app.stream.wire import Wire

ROOT = Path(__file__).parents[3]
PATH = "/ws/sessions/s-1/events"

if settings.DATABASES["default"]["ENGINE"].endswith("postgresql"):
    pytest.skip("the server process is tried on SQLite", allow_module_level=True)


class Server:
    """Daphne on the test's database, which can be killed and started again."""

    def __init__(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self.database = str(connection.settings_dict["NAME"])

    def start(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "daphne", "-b", "127.0.0.1", "-p", str(self.port),
             "dexweb.asgi:application"],
            cwd=ROOT,
            env={**os.environ, "DATABASE_URL": f"sqlite:///{self.database}"},
        )  # fmt: skip

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    async def open(self, path: str, **headers: str) -> Wire:
        async with asyncio.timeout(30):
            while True:
                try:
                    return await Wire.open(self.port, path, **headers)
                except ConnectionError as refused:
                    if refused.args[0] == 403:
                        raise
                    await asyncio.sleep(0.1)


@pytest.fixture
def server(session: Session) -> Iterator[Server]:
    server = Server()
    server.start()
    yield server
    server.kill()


async def follow(wire: Wire, last: int) -> list[int]:
    """The numbers of all events until ``last``, acknowledged as they come."""
    seen: list[int] = []
    async with asyncio.timeout(20):
        while not seen or seen[-1] < last:
            message = await wire.read()
            assert isinstance(message, dict)
            if message["type"] == "events":
                seen += [event["seq"] for event in message["events"]]
                wire.say(type="ack", seq=seen[-1])
    return seen


async def test_a_viewer_loses_nothing_when_the_server_is_killed(
    server: Server, browser: Client
) -> None:
    headers = {"Cookie": cookie(browser)[1].decode(), "Origin": f"http://127.0.0.1:{server.port}"}
    wire = await server.open(PATH, **headers)
    await put("s-1", "one", "two")
    seen = await follow(wire, 2)
    server.kill()
    with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
        while True:
            await wire.read()
    await put("s-1", "three")
    server.start()
    wire = await server.open(f"{PATH}?after={seen[-1]}", **headers)
    await put("s-1", "four")
    assert seen + await follow(wire, 4) == [1, 2, 3, 4]
    wire.close()


async def test_a_browser_is_told_why_over_the_wire(server: Server, browser: Client) -> None:
    wire = await server.open(PATH)
    assert await wire.read() == 4401
    with pytest.raises(ConnectionRefusedError, match="403"):
        await server.open(PATH, Cookie=cookie(browser)[1].decode(), Origin="https://evil.example")


async def test_the_client_in_the_docs_follows_a_session(server: Server, watcher: User) -> None:
    pytest.importorskip("websockets")
    page = (ROOT / "docs" / "agent-events.md").read_text()
    found = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    assert found
    token = await asyncio.to_thread(_token, watcher)
    (await server.open(PATH)).close()  # it serves
    await put("s-1", "one", "two")
    client = await asyncio.create_subprocess_exec(
        sys.executable, "-c", found[1], "s-1",
        env={**os.environ, "DEXWEB": f"127.0.0.1:{server.port}", "DEXWEB_TOKEN": token},
        stdout=subprocess.PIPE,
    )  # fmt: skip
    assert client.stdout
    async with asyncio.timeout(20):
        lines = [await client.stdout.readline() for _ in range(2)]
        await put("s-1", "three")
        lines.append(await client.stdout.readline())
    with contextlib.suppress(ProcessLookupError):
        client.kill()
    await client.wait()
    assert [line.split()[:2] for line in lines] == [
        [str(n).encode(), b"tool.progress"] for n in (1, 2, 3)
    ]


def _token(user: User) -> str:
    try:
        return str(Token.objects.create(user=user).key)
    finally:
        connection.close()
