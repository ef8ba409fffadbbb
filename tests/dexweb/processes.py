"""A program under test that is read line by line, with a limit on every wait."""

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

from dexweb.engine.embedded import free_port

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 60.0


class Running:
    """A Python program of ours and what it prints."""

    def __init__(self, *words: str, env: dict[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *words],
            cwd=ROOT,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self.output = ""
        self._rest = ""

    def line(self, word: str, limit: float = LIMIT) -> str:
        """The next line that has ``word`` in it."""
        until = time.monotonic() + limit
        while True:
            while "\n" in self._rest:
                line, self._rest = self._rest.split("\n", 1)
                if word in line:
                    return line
            read = self._read(until)
            assert read, f"{word!r} was not printed; this was:\n{self.output}"
            self._rest += read

    def ended(self, limit: float = LIMIT) -> int:
        """The exit code, once it has ended and all is read."""
        until = time.monotonic() + limit
        while read := self._read(until):
            self._rest += read
        return self.process.wait(max(0.1, until - time.monotonic()))

    def send(self, signum: int) -> None:
        self.process.send_signal(signum)

    def stop(self) -> None:
        """As Ctrl-C does; insisted on when that takes too long."""
        self.send(signal.SIGINT)
        try:
            self.ended(limit=20)
        finally:
            self.close()

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()

    def _read(self, until: float) -> str:
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], max(0, until - time.monotonic()))
        read = os.read(self.process.stdout.fileno(), 65536).decode() if ready else ""
        self.output += read
        return read


class Place:
    """A DEXWEB_VAR and a port for one Dexweb, with nothing on PATH."""

    def __init__(self, var: Path) -> None:
        self.var = var
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.env = {
            "DEXWEB_VAR": str(var),
            "DEXWEB_PORT": str(self.port),
            "DEXWEB_TEMPORAL_ADDRESS": "",
            "DEXWEB_DEMO": "0",
            "DATABASE_URL": f"sqlite:///{var / 'dexweb.sqlite3'}",
            "PATH": "",
        }

    def up(self, **env: str) -> Running:
        return Running("manage.py", "up", env={**self.env, **env})

    def processes(self) -> dict[str, int]:
        """The children that run on this place, by what they are."""
        words = {"worker": "manage.py worker", "web": "daphne", "engine": "start-dev"}
        found = {}
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                env = (entry / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if f"DEXWEB_VAR={self.var}".encode() in env:
                found.update({name: int(entry.name) for name, w in words.items() if w in line})
        return found


def ends(pid: int, limit: float = 10.0) -> bool:
    """Whether the process ends within ``limit`` seconds (or has ended)."""
    try:
        watched = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([watched], [], [], limit)[0])
    finally:
        os.close(watched)
