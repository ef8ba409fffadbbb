"""The processes of one Dexweb: they die by SIGKILL at any moment, and are started again at once."""

import http.client
import math
import random
import signal
import threading
import time
from collections import Counter
from multiprocessing.process import BaseProcess
from pathlib import Path

from dexweb.engine import embedded
from tests import forks

HOST = "127.0.0.1"
WORKERS = 4
READY_LIMIT = 300.0
SETTLED = 30.0


def run_web(log: Path, port: int) -> None:
    forks.settle_in(log)
    # It chooses the process's event loop when it is imported, so only here.
    from daphne.cli import CommandLineInterface

    CommandLineInterface().run(["-v", "0", "-b", HOST, "-p", str(port), "dexweb.asgi:application"])


class Herd:
    """Engine, web and workers. `tend` starts again what is dead; call it often."""

    def __init__(self, var: Path, port: int) -> None:
        self.var = var
        self.port = port
        self.killed: Counter[str] = Counter()
        self.died: list[str] = []
        self._logs = var / "logs"
        self._logs.mkdir(exist_ok=True)
        self._processes: dict[str, BaseProcess] = {}
        self._engine: embedded.EmbeddedEngine | None = None
        self._engine_up = 0.0
        self._engine_port = embedded.free_port()
        self._stopping = threading.Event()
        self._keeper = threading.Thread(target=self._keep_engine, name="engine-keeper")

    def prepare(self) -> None:
        """Begin what takes long and needs no database."""
        forks.begin()
        self._keeper.start()

    def start(self) -> None:
        self.wait_for(lambda: self._engine is not None, "the engine")
        self.tend()
        self.wait_for(self.web_is_ready, "the web")

    def tend(self) -> None:
        names = ["web", *(f"worker-{number}" for number in range(1, WORKERS + 1))]
        for name in names:
            process = self._processes.get(name)
            if process is not None and process.is_alive():
                continue
            if process is not None and process.exitcode != -signal.SIGKILL:
                self._note_death(name, process.exitcode)
            self._processes[name] = self._fork(name)

    def _note_death(self, name: str, code: int | None) -> None:
        """A worker that finds no engine at its start ends, as it should; nothing else ends by itself."""
        if time.monotonic() - self._engine_up > SETTLED or name == "web":
            self.died.append(f"{name} ended by itself with {code}; see its log")

    def _fork(self, name: str) -> BaseProcess:
        log = self._logs / f"{name}.log"
        if name == "web":
            process = forks.fork.Process(target=run_web, args=(log, self.port), daemon=True)
        else:
            process = forks.fork.Process(target=forks.run_worker, args=(log,), daemon=True)
        process.start()
        return process

    def kill(self, victims: str, dice: random.Random) -> None:
        """Kill at once: one ``worker``, the ``web``, the ``engine``, all ``workers`` or all there is."""
        workers = sorted(name for name in self._processes if name != "web")
        names = {
            "worker": [dice.choice(workers)],
            "workers": workers,
            "web": ["web"],
            "engine": ["engine"],
            "all": ["engine", *workers, "web"],
        }[victims]
        for name in names:
            self._kill(name)

    def _kill(self, name: str) -> None:
        if name == "engine":
            engine = self._engine
            if engine is not None and engine.running():
                engine.process.kill()
                # Until it is up again.
                self._engine_up = math.inf
                self.killed["engine"] += 1
            return
        process = self._processes[name]
        if process.is_alive():
            process.kill()
            process.join()
            self.killed[name.partition("-")[0]] += 1

    def _keep_engine(self) -> None:
        """In a thread that lives as long as the storm: the server dies with the one that started it."""
        while not self._stopping.is_set():
            engine = embedded.start(self.var, self._engine_port)
            self._engine, self._engine_up = engine, time.monotonic()
            while engine.running():
                if self._stopping.wait(0.02):
                    engine.stop()
                    return

    def web_is_ready(self) -> bool:
        connection = http.client.HTTPConnection(HOST, self.port, timeout=5)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def wait_for(self, ready: object, what: str) -> None:
        give_up = time.monotonic() + READY_LIMIT
        while not ready():  # type: ignore[operator]
            if time.monotonic() > give_up:
                raise TimeoutError(f"{what} did not come up; see {self._logs}")
            time.sleep(0.05)

    def stop(self) -> None:
        for process in self._processes.values():
            process.kill()
            process.join()
        self._stopping.set()
        self._keeper.join()
