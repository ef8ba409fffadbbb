"""One process tree: starts child processes, keeps them running, and stops them in order.

Each child has a session of its own, so that Ctrl-C reaches the supervisor alone, and dies with
the supervisor even when that is killed. Use it from the main thread only.
"""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from dexweb.engine.embedded import dies_with_parent, last_lines

Launch = Callable[[], "subprocess.Popen[bytes]"]
BACK_OFF = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
# A child that ran this long before it died starts its back-off anew.
STEADY = 60.0
LOOK_EVERY = 0.1
LOG_SIZE = 5 * 1024 * 1024


class CannotStart(Exception):
    """Why nothing was started, or why a start was given up, in words."""


@dataclass
class Child:
    """A process to keep running. ``stop_limit``: seconds it has to end once asked."""

    name: str
    log: Path
    launch: Launch
    stop_limit: float = 3.0
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    started: float = 0.0
    deaths: int = 0
    restart_at: float | None = None

    def start(self) -> None:
        self.restart_at = None
        self.started = time.monotonic()
        self.process = self.launch()

    def exit_code(self) -> int | None:
        """How it ended, or None while it runs."""
        return self.process.poll() if self.process else None

    def stop(self, limit: float) -> None:
        """Ask it to end, insist after ``limit`` seconds, and end what it left behind."""
        if self.process is None:
            return
        if self.process.poll() is None:
            self.process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(limit)
        self.kill()

    def kill(self) -> None:
        if self.process is None:
            return
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class Supervisor:
    """Children in the order of their start; ``say`` tells the person at the terminal."""

    def __init__(
        self, say: Callable[[str], None], back_off: Sequence[float] = BACK_OFF, limit: float = 10.0
    ) -> None:
        self.say = say
        self.back_off = back_off
        self.limit = limit
        self.children: list[Child] = []

    def start(self, child: Child) -> None:
        self.children.append(child)
        child.start()

    def wait_for(self, what: str, ready: Callable[[], bool], limit: float) -> None:
        """Return once ``ready`` says so; give up when a child ends first or the time is over."""
        until = time.monotonic() + limit
        while True:
            for child in self.children:
                if child.exit_code() is not None:
                    raise CannotStart(f"{_ended(child)} before {what}.\n{_words(child)}")
            if ready():
                return
            if time.monotonic() >= until:
                words = "\n".join(_words(child) for child in self.children)
                raise CannotStart(f"Gave up after {limit:.0f} seconds, before {what}.\n{words}")
            time.sleep(LOOK_EVERY)

    def watch(self) -> None:
        """Restart whatever dies, until a KeyboardInterrupt."""
        while True:
            for child in self.children:
                self._look_after(child)
            time.sleep(LOOK_EVERY)

    def stop(self) -> None:
        """End all, the latest started first, within the limit; a second Ctrl-C ends all at once."""
        until = time.monotonic() + self.limit
        try:
            if self.children:
                self.say("Stopping …")
            for child in reversed(self.children):
                child.stop(max(0.0, min(child.stop_limit, until - time.monotonic())))
        except KeyboardInterrupt:
            self.say("Stopping at once.")
        finally:
            for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(signum, signal.SIG_IGN)
            for child in reversed(self.children):
                child.kill()

    def _look_after(self, child: Child) -> None:
        if child.restart_at is None and child.exit_code() is not None:
            self._plan_restart(child, f"{_ended(child)}; see {child.log}.")
        elif child.restart_at is not None and time.monotonic() >= child.restart_at:
            try:
                child.start()
            except Exception as error:
                self._plan_restart(child, f"The {child.name} could not be started: {error}")
            else:
                self.say(f"The {child.name} runs again.")

    def _plan_restart(self, child: Child, why: str) -> None:
        if time.monotonic() - child.started > STEADY:
            child.deaths = 0
        delay = self.back_off[min(child.deaths, len(self.back_off) - 1)]
        child.deaths += 1
        child.restart_at = time.monotonic() + delay
        self.say(f"{why} Starting it again in {delay:g} s.")


def command(words: Sequence[str], log: Path, cwd: Path, env: Mapping[str, str]) -> Launch:
    """How to launch a program whose output is appended to ``log``."""

    def launch() -> subprocess.Popen[bytes]:
        with log.open("ab") as output:
            return subprocess.Popen(
                words,
                cwd=cwd,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=dies_with_parent(),
            )

    return launch


def stop_signals_interrupt() -> None:
    """Make SIGTERM and SIGHUP do what Ctrl-C does, also where a shell has it ignored."""
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, signal.default_int_handler)


def environment() -> dict[str, str]:
    """The children's environment: ours, with this environment's programs first on PATH."""
    here = str(Path(sys.executable).parent)
    path = os.environ.get("PATH", "")
    return {**os.environ, "PATH": f"{here}:{path}" if path else here, "PYTHONUNBUFFERED": "1"}


def claim(var: Path, address: str) -> TextIO:
    """The lock that says that we run on ``var``; keep it open. `CannotStart` says who has it."""
    lock = (var / "up.lock").open("a+")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        who = lock.read().strip() or "another process"
        lock.close()
        raise CannotStart(
            f"Dexweb already runs on {var}: {who}. Stop it first, or set DEXWEB_VAR and "
            "DEXWEB_PORT to run a second one beside it."
        ) from None
    lock.truncate(0)
    lock.write(f"process {os.getpid()} at {address}\n")
    lock.flush()
    return lock


def check_port(host: str, port: int) -> None:
    """Raise `CannotStart` unless ``port`` can be served."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except (OSError, OverflowError) as error:
            raise CannotStart(
                f"Port {port} cannot be used ({getattr(error, 'strerror', None) or error}). Stop "
                "the program that has it, or choose another: DEXWEB_PORT=8001 make run"
            ) from None


def open_log(var: Path, name: str) -> Path:
    """The path of a child's log; a long one is set aside as ``.1`` first."""
    log = var / "logs" / f"{name}.log"
    log.parent.mkdir(exist_ok=True)
    with suppress(FileNotFoundError):
        if log.stat().st_size > LOG_SIZE:
            log.replace(log.with_name(f"{name}.log.1"))
    return log


def _ended(child: Child) -> str:
    code = child.exit_code()
    if code is not None and code < 0:
        return f"The {child.name} was ended by signal {-code} ({_signal_name(-code)})"
    return f"The {child.name} ended with exit code {code}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"


def _words(child: Child) -> str:
    words = last_lines(child.log) or "(nothing was logged)"
    return f"The last lines of {child.log}:\n{words}"
