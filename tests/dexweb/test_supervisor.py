"""The process tree: children are restarted when they die and ended, in order, when asked."""

import json
import os
import re
import signal
import socket
import sys
import time

import pytest

from dexweb import supervisor
from tests.dexweb.processes import Running, ends

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="reads /proc and the parent-death signal"
)

TREE = """
import sys, json
from pathlib import Path
from dexweb import supervisor
var, back_off, programs = Path(sys.argv[1]), json.loads(sys.argv[2]), json.loads(sys.argv[3])
supervisor.stop_signals_interrupt()
tree = supervisor.Supervisor(lambda words: print(words, flush=True), back_off, limit=5.0)
try:
    for name, code in programs.items():
        log = supervisor.open_log(var, name)
        words = [sys.executable, "-c", code]
        launch = supervisor.command(words, log, var, supervisor.environment())
        child = supervisor.Child(name, log, launch)
        tree.start(child)
        tree.wait_for(f"{name} had started", lambda: "here" in log.read_text(), 20)
        print(name, "pid", child.process.pid, flush=True)
    tree.watch()
except KeyboardInterrupt:
    pass
finally:
    tree.stop()
"""
# The parent is told of a child's life through the child's log.
STEADY = "import signal; print('here', flush=True); signal.pause()"
# Lives until it is told to end by itself; dies at once whenever it is started again.
FAILS_ON_CUE = """
import signal, sys
from pathlib import Path
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
first = not Path('ran').exists()
Path('ran').touch()
print('here', flush=True)
if first:
    signal.sigwait([signal.SIGUSR1])
sys.exit(7)
"""
SAYS_GOODBYE = """
import signal, sys, time
def bye(*_):
    print(f'{sys.argv[0]} ended at {time.monotonic_ns()}', flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, bye)
print('here', flush=True)
signal.pause()
"""
STUBBORN = """
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print('here', flush=True)
while True: signal.pause()
"""
WITH_A_CHILD = """
import signal, subprocess
print('here', subprocess.Popen(['sleep', '600']).pid, flush=True)
signal.pause()
"""


@pytest.fixture
def tree(tmp_path):
    """Start a supervisor in a process of its own, with these programs by name."""
    running = []

    def start(back_off=(0.05, 0.1), **programs):
        words = ["-c", TREE, str(tmp_path), json.dumps(back_off), json.dumps(programs)]
        running.append(Running(*words))
        return running[-1]

    yield start
    for one in running:
        one.close()


def pid_of(tree, name):
    return int(tree.line(f"{name} pid").rsplit(" ", 1)[1])


def test_a_child_that_dies_is_named_with_its_exit_code_and_log_and_started_again(tree, tmp_path):
    running = tree(web=FAILS_ON_CUE)
    os.kill(pid_of(running, "web"), signal.SIGUSR1)
    said = running.line("exit code")
    assert said.startswith("The web ended with exit code 7; see ")
    assert str(tmp_path / "logs" / "web.log") in said
    running.line("The web runs again")


def test_a_child_killed_by_a_signal_is_said_to_be(tree):
    running = tree(worker=STEADY)
    os.kill(pid_of(running, "worker"), signal.SIGKILL)
    assert "ended by signal 9 (SIGKILL)" in running.line("The worker was ended")
    running.line("The worker runs again")


def test_each_death_in_a_row_waits_longer_up_to_the_last_step(tree):
    running = tree(web=FAILS_ON_CUE, back_off=[0.01, 0.02, 0.04])
    os.kill(pid_of(running, "web"), signal.SIGUSR1)
    waits = [running.line("again in").split("again in ")[1] for _ in range(5)]
    assert waits == ["0.01 s.", "0.02 s.", "0.04 s.", "0.04 s.", "0.04 s."]


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_stop_ends_the_last_started_first(tree, tmp_path, signum):
    running = tree(engine=SAYS_GOODBYE, worker=SAYS_GOODBYE, web=SAYS_GOODBYE)
    pid_of(running, "web")
    running.send(signum)
    assert running.ended() == 0
    logs = [(tmp_path / "logs" / f"{name}.log").read_text() for name in ("web", "worker", "engine")]
    times = [int(re.search(r"ended at (\d+)", log)[1]) for log in logs]
    assert times == sorted(times)


def test_a_child_that_ignores_the_stop_is_ended_within_the_limit(tree):
    running = tree(web=STUBBORN, worker=STUBBORN)
    pids = [pid_of(running, "web"), pid_of(running, "worker")]
    began = time.monotonic()
    running.send(signal.SIGTERM)
    assert running.ended() == 0
    assert time.monotonic() - began < 8
    assert all(ends(pid) for pid in pids)


def test_a_second_stop_ends_all_at_once(tree):
    running = tree(web=STUBBORN)
    pid = pid_of(running, "web")
    running.send(signal.SIGINT)
    running.line("Stopping")
    began = time.monotonic()
    running.send(signal.SIGINT)
    running.ended()
    assert time.monotonic() - began < 2
    assert ends(pid)


def test_what_a_child_left_behind_is_ended_too(tree, tmp_path):
    running = tree(worker=WITH_A_CHILD)
    pid_of(running, "worker")
    grandchild = int((tmp_path / "logs" / "worker.log").read_text().split()[1])
    running.send(signal.SIGTERM)
    assert running.ended() == 0
    assert ends(grandchild)


def test_a_killed_supervisor_leaves_no_orphans(tree):
    running = tree(engine=STUBBORN, web=STUBBORN)
    pids = [pid_of(running, "engine"), pid_of(running, "web")]
    running.send(signal.SIGKILL)
    assert all(ends(pid) for pid in pids)


def test_a_child_that_ends_before_it_is_ready_stops_the_start_with_its_last_words(tree):
    running = tree(web="raise SystemExit('no such setting')", worker=STEADY)
    assert running.ended() != 0
    assert "The web ended with exit code 1 before web had started" in running.output
    assert "no such setting" in running.output
    assert "worker pid" not in running.output


def test_a_second_one_on_the_same_data_is_told_who_runs(tmp_path):
    first = supervisor.claim(tmp_path, "http://127.0.0.1:8000/")
    with pytest.raises(supervisor.CannotStart) as refusal:
        supervisor.claim(tmp_path, "http://127.0.0.1:8001/")
    first.close()
    assert f"process {os.getpid()} at http://127.0.0.1:8000/" in str(refusal.value)
    supervisor.claim(tmp_path, "http://127.0.0.1:8001/").close()


def test_a_port_in_use_is_refused_with_a_way_out():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(supervisor.CannotStart, match=rf"Port {port} .*DEXWEB_PORT=8001"):
            supervisor.check_port("127.0.0.1", port)
    supervisor.check_port("127.0.0.1", port)


def test_a_long_log_is_set_aside_at_the_start(tmp_path, monkeypatch):
    monkeypatch.setattr(supervisor, "LOG_SIZE", 10)
    log = supervisor.open_log(tmp_path, "web")
    log.write_text("more than ten bytes")
    supervisor.open_log(tmp_path, "web")
    assert not log.exists()
    assert (tmp_path / "logs" / "web.log.1").read_text() == "more than ten bytes"
