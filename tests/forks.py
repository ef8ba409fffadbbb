"""Worker processes without seconds of imports: each is forked from a process that has begun nothing."""

import multiprocessing
import os
import subprocess
from multiprocessing import forkserver
from multiprocessing.process import BaseProcess
from pathlib import Path

from django.core.management import call_command

from dexweb.engine.embedded import dies_with_parent

fork = multiprocessing.get_context("forkserver")
fork.set_forkserver_preload(["tests.preload"])


def begin() -> None:
    """Start what is forked from; its environment is that of this moment."""
    forkserver.ensure_running()


def settle_in(log: Path) -> None:
    """In the forked process: what it prints goes to ``log``, and it outlives nobody."""
    os.setsid()
    if bind := dies_with_parent(os.getppid()):
        bind()
    output = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.dup2(output, 1)
    os.dup2(output, 2)


def run_worker(log: Path, *options: str) -> None:
    settle_in(log)
    call_command("worker", *options)


class ForkedWorker:
    """``manage.py worker``, asked and told as a `subprocess.Popen` is."""

    def __init__(self, log: Path, *options: str) -> None:
        self._process: BaseProcess = fork.Process(
            target=run_worker, args=(log, *options), daemon=True
        )
        self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid
        return self._process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def send_signal(self, signum: int) -> None:
        os.kill(self.pid, signum)

    def kill(self) -> None:
        self._process.kill()

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        code = self.poll()
        if code is None:
            raise subprocess.TimeoutExpired("worker", timeout or 0)
        return code
