"""What anybody may send to the web process, signed in or not."""

import http.client
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dexweb.bodies import MOST

ROOT = Path(__file__).parents[2]
LOGIN = "/accounts/login/"


@pytest.fixture(scope="module")
def web():
    """Daphne as the docs start it; its process and its port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["-v", "0", "-b", "127.0.0.1", "-p", str(port), "dexweb.asgi:application"]
    process = subprocess.Popen([sys.executable, "-m", "daphne", *words], cwd=ROOT, env=os.environ)
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            break
        except OSError:
            time.sleep(0.1)
    yield process.pid, port
    process.kill()
    process.wait()


def ask(port, method, path, body=None, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer


def most_memory(pid):
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024


@pytest.mark.parametrize("chunked", [False, True])
def test_a_huge_body_is_refused_and_not_kept(web, chunked):
    pid, port = web
    ask(port, "GET", LOGIN)
    before = most_memory(pid)
    size, part = 128 * 1024 * 1024, bytes(1024 * 1024)
    parts = (part for _ in range(size // len(part)))
    length = {} if chunked else {"Content-Length": str(size)}
    assert ask(port, "POST", LOGIN, parts, **length).status == 413
    assert most_memory(pid) - before < size / 4


def test_a_body_at_the_bound_still_reaches_the_site(web):
    assert ask(web[1], "POST", LOGIN, bytes(MOST)).status in (400, 403)


def test_a_client_does_not_say_where_the_site_is_mounted(web):
    answer = ask(web[1], "GET", "/sessions/", **{"Daphne-Root-Path": "//elsewhere.example"})
    assert answer.getheader("Location").startswith(LOGIN)
