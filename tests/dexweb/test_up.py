"""``manage.py up``: the whole of Dexweb from one command, as a person at a terminal meets it."""

import json
import os
import re
import signal
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import ClassVar
from urllib.request import urlopen

import pytest

from dexweb import supervisor
from dexweb.engine.embedded import free_port
from dexweb.management.commands import up
from tests.dexweb.processes import Place, Running, ends

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return Place(tmp_path_factory.mktemp("up"))


@pytest.fixture(scope="module")
def dexweb(place):
    running = place.up()
    running.line("Dexweb is ready", limit=120)
    yield running
    running.close()


def test_it_says_where_it_is_once_it_answers(dexweb, place):
    assert f"Dexweb is ready at {place.url}/\n" in dexweb.output
    assert urlopen(f"{place.url}/readyz", timeout=10).status == 200
    assert set(place.processes()) == {"engine", "worker", "web"}


def test_both_keys_are_there_to_be_backed_up_from_the_first_start(dexweb, place):
    assert {"secret.key", "credentials.key"} <= {file.name for file in place.var.iterdir()}


def test_a_second_one_on_the_same_data_is_refused_with_who_runs(dexweb, place):
    second = place.up(DEXWEB_PORT=str(free_port()))
    assert second.ended() == 1
    assert f"process {dexweb.process.pid} at {place.url}/" in second.output


def test_a_port_in_use_is_refused_with_a_way_out(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        refused = Place(tmp_path).up(DEXWEB_PORT=port)
        assert refused.ended() == 1
    assert f"Port {port} cannot be used" in refused.output
    assert "DEXWEB_PORT=8001 make run" in refused.output


@pytest.mark.parametrize("name", ["worker", "web", "engine"])
def test_a_killed_process_is_named_and_runs_again(dexweb, place, name):
    os.kill(place.processes()[name], signal.SIGKILL)
    said = dexweb.line(f"The {name} was ended by signal 9")
    assert f"logs/{name}.log" in said
    dexweb.line(f"The {name} runs again", limit=60)


def test_ctrl_c_ends_everything_within_ten_seconds(dexweb, place):
    pids = place.processes().values()
    assert pids
    began = time.monotonic()
    dexweb.send(signal.SIGINT)
    assert dexweb.ended(limit=20) == 0
    assert time.monotonic() - began < 11
    assert all(ends(pid, limit=1) for pid in pids)
    assert dexweb.output.rstrip().endswith("Stopped.")


def test_the_demo_and_its_password_survive_a_killed_up_that_leaves_no_orphans(place):
    first = place.up(DEXWEB_DEMO="1")
    password = _password(first)
    pids = place.processes().values()
    first.close()
    assert pids and all(ends(pid) for pid in pids)
    second = place.up(DEXWEB_DEMO="1")
    assert _password(second) == password
    assert "not complete" not in first.output + second.output
    second.send(signal.SIGTERM)
    assert second.ended(limit=20) == 0


def _password(running: Running) -> str:
    line = running.line("Dexweb is ready", limit=240)
    found = re.search(r"\(user demo, password (\S+)\)$", line)
    assert found, line
    return found[1]


def test_an_engine_of_your_own_that_is_away_is_named(settings, monkeypatch):
    settings.DEXWEB_TEMPORAL_ADDRESS = f"127.0.0.1:{free_port()}"
    monkeypatch.setattr(up, "ENGINE_LIMIT", 0.2)
    said = []
    with pytest.raises(supervisor.CannotStart) as refusal:
        up.Command().start_engine(supervisor.Supervisor(said.append))
    assert settings.DEXWEB_TEMPORAL_ADDRESS in str(refusal.value)
    assert "unset the variable" in str(refusal.value)


class Answers(BaseHTTPRequestHandler):
    """A web server whose /readyz says ``checks``."""

    checks: ClassVar[dict[str, str]] = {}

    def do_GET(self):
        body = json.dumps({"ready": False, "checks": self.checks}).encode()
        self.send_response(503)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.mark.parametrize(
    ("engine", "ready", "missing"),
    [("unreachable", False, False), ("engine_state_unreadable: a key is missing", True, True)],
)
def test_a_missing_key_keeps_nobody_from_the_pages_that_name_it(settings, engine, ready, missing):
    with HTTPServer(("127.0.0.1", 0), Answers) as server:
        settings.DEXWEB_PORT = server.server_port
        Answers.checks = {"database": "ok", "engine": engine}
        threading.Thread(target=server.serve_forever, daemon=True).start()
        assert (up.web_is_ready(), up.key_is_missing()) == (ready, missing)
        server.shutdown()
