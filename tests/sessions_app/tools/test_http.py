import asyncio
import http.server
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from sessions_app.tools.mcp import (
    ConnectionLost,
    ConnectionSpec,
    ConnectionUnavailable,
    ToolRaised,
    ToolTimedOut,
    list_tools,
)
from sessions_app.tools.transport import request_headers

SERVER = Path(__file__).with_name("odd_server.py")
SECRET = "web-key-abcdef-987654"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class WebServer:
    """The odd server over HTTP, as a process that can be killed."""

    def __init__(self) -> None:
        self.port = free_port()
        self.spec = ConnectionSpec(
            "web", "http", url=f"http://127.0.0.1:{self.port}/mcp", secret=SECRET
        )
        self.start()

    def start(self) -> None:
        command = [sys.executable, str(SERVER), str(self.port)]
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 20
        while time.monotonic() < end:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        raise AssertionError("the server never came up")

    def kill(self) -> None:
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()


@pytest.fixture
def web():
    server = WebServer()
    yield server
    server.kill()


@pytest.fixture
def gate():
    """A server that only ever answers with the status it is told, and keeps the headers it saw."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            server.seen.append({key.lower(): value for key, value in self.headers.items()})
            self.send_response(server.status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.status, server.seen = 401, []
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


async def test_tools_are_listed_and_called_and_a_killed_server_is_lost(web, pool):
    assert "web__echo" in [tool.name for tool in await pool.list_tools(web.spec)]
    assert "5" in (await pool.call_tool(web.spec, "web__echo", {"value": 5}, "c")).text
    with pytest.raises(ToolRaised):
        await pool.call_tool(web.spec, "web__echo", {"value": "five"}, "c")
    with pytest.raises(ToolTimedOut):
        await pool.call_tool(web.spec, "web__slow", {"seconds": 30}, "c", timeout=0.3)

    call = asyncio.create_task(pool.call_tool(web.spec, "web__slow", {"seconds": 30}, "c"))
    await asyncio.sleep(0.3)
    web.kill()
    with pytest.raises(ConnectionLost):
        await asyncio.wait_for(call, 5)
    with pytest.raises(ConnectionUnavailable):
        await asyncio.wait_for(pool.call_tool(web.spec, "web__echo", {"value": 5}, "c"), 5)
    web.start()
    assert "6" in (await pool.call_tool(web.spec, "web__echo", {"value": 6}, "c")).text
    web.kill()
    with pytest.raises(ConnectionUnavailable):
        await asyncio.wait_for(pool.call_tool(web.spec, "web__echo", {"value": 7}, "c"), 5)
    web.start()


async def test_progress_and_cancellation_work_over_http(web, pool):
    told = []

    async def on_progress(done, total, words):
        told.append(words)

    await pool.call_tool(web.spec, "counts", {}, "c", on_progress)
    assert told == ["step 1", "step 2", "step 3"]
    task = asyncio.create_task(pool.call_tool(web.spec, "slow", {"seconds": 30}, "c"))
    await asyncio.sleep(0.2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 2)


@pytest.mark.parametrize("status", [401, 403, 404, 500])
async def test_a_server_that_refuses_says_the_status_and_never_the_secret(gate, status):
    gate.status = status
    url = f"http://127.0.0.1:{gate.server_address[1]}/mcp"
    with pytest.raises(ConnectionUnavailable) as caught:
        await list_tools(ConnectionSpec("web", "http", url=url, secret=SECRET))
    assert str(status) in caught.value.message
    assert SECRET not in caught.value.message
    assert gate.seen[0]["authorization"] == f"Bearer {SECRET}"


async def test_an_address_that_is_none_is_refused_before_anything_is_sent(pool):
    with pytest.raises(ConnectionUnavailable, match="no http or https address"):
        await pool.list_tools(ConnectionSpec("web", "http", url="file:///etc/passwd"))


@pytest.mark.parametrize(
    ("headers", "secret", "expected"),
    [
        ({}, "", {}),
        ({}, "s", {"Authorization": "Bearer s"}),
        ({"X-Key": "k=${credential}"}, "s", {"X-Key": "k=s"}),
        ({"X-Key": "other"}, "s", {"X-Key": "other", "Authorization": "Bearer s"}),
    ],
)
def test_the_secret_goes_to_its_placeholder_or_to_authorization(headers, secret, expected):
    spec = ConnectionSpec("web", "http", url="http://x", headers=headers, secret=secret)
    assert request_headers(spec) == expected
