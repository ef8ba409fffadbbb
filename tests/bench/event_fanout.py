"""How soon a committed event is in the hands of many viewers, and what slow ones cost.

Runs a real server (Daphne) and a writer as processes of their own, on a fresh SQLite file; this
process is all of the viewers. Prints what it measured: `python tests/bench/event_fanout.py`.
"""

import asyncio
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

VIEWERS = 200
RATE = 20
SECONDS = 10
BURST = 10_000
BURST_VIEWERS = 50
SLOW = 5

PREPARE = """
import django
django.setup()
from django.core.management import call_command
call_command("migrate", verbosity=0, skip_checks=True)
from django.contrib.auth.models import User
from rest_framework.authtoken.models import Token
from django.utils import timezone
from sessions_app.models import Agent, Session
agent = Agent.objects.create(name="desk", model="demo:script")
for pk in ("steady", "burst"):
    now = timezone.now()
    Session.objects.create(id=pk, agent=agent, title=pk, created_at=now, updated_at=now)
print(Token.objects.create(user=User.objects.create_superuser("bench")).key)
"""

WRITE = """
import sys, time
import django
django.setup()
from django.utils import timezone
from sessions_app.projection import locked
from sessions_app.stream.append import append
session_id, count, batch = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
pause = float(sys.argv[4])
due = time.time()
for _ in range(count // batch):
    with locked(session_id) as session:
        for _ in range(batch):
            payload = {"text": "x" * 200, "sent": time.time()}
            append(session, "model.delta", payload, timezone.now(), "RunModel-1")
    due += pause
    time.sleep(max(0, due - time.time()))
"""


class Bench:
    """The server and its data, in a directory of its own."""

    def __init__(self, var: str) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("DEXWEB_")}
        kept.pop("DATABASE_URL", None)
        self.env = kept | {"DEXWEB_VAR": var, "DJANGO_SETTINGS_MODULE": "dexweb.settings"}
        self.token = self.python("-c", PREPARE).stdout.strip().splitlines()[-1]
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.server = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "daphne", "-v", "0", "-p", str(self.port),
             "dexweb.asgi:application"],
            cwd=ROOT,
            env=self.env,
            stdout=subprocess.DEVNULL,
        )  # fmt: skip

    def python(self, *args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *args],
            cwd=ROOT,
            env=self.env,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )

    async def write(self, *args: object) -> None:
        await asyncio.to_thread(self.python, "-c", WRITE, *map(str, args))

    async def viewer(self, session_id: str):  # type: ignore[no-untyped-def]
        from tests.sessions_app.stream.wire import Wire

        while True:
            try:
                return await Wire.open(
                    self.port,
                    f"/ws/sessions/{session_id}/events",
                    Authorization=f"Token {self.token}",
                )
            except ConnectionError:
                await asyncio.sleep(0.1)

    def memory(self) -> float:
        """The server's resident memory in MB."""
        status = Path(f"/proc/{self.server.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024

    def cpu(self) -> float:
        """Seconds of CPU that the server has used."""
        fields = Path(f"/proc/{self.server.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def follow(wire, last: int, pause: float = 0.0) -> tuple[list[int], list[float]]:  # type: ignore[no-untyped-def]
    """Numbers and delays in ms until event ``last``; a slow one waits before it acknowledges."""
    numbers: list[int] = []
    delays: list[float] = []
    acknowledged = 0
    while not numbers or numbers[-1] < last:
        message = await wire.read()
        if isinstance(message, int):
            raise SystemExit(f"closed with {message}")
        now = time.time()
        for event in message.get("events", []):
            numbers.append(event["seq"])
            delays.append((now - event["payload"]["sent"]) * 1000)
        if numbers and (pause or numbers[-1] - acknowledged >= 64):
            await asyncio.sleep(pause)
            acknowledged = numbers[-1]
            wire.say(type="ack", seq=acknowledged)
    return numbers, delays


async def steady(bench: Bench) -> None:
    wires = [await bench.viewer("steady") for _ in range(VIEWERS)]
    for wire in wires:
        await wire.read()
    before = bench.cpu()
    await asyncio.sleep(2)
    idle = (bench.cpu() - before) / 2
    count = RATE * SECONDS
    following = [asyncio.create_task(follow(wire, count)) for wire in wires]
    await bench.write("steady", count, 1, 1 / RATE)
    results = await asyncio.gather(*following)
    lost = sum(numbers != list(range(1, count + 1)) for numbers, _ in results)
    delays = sorted(delay for _, times in results for delay in times)
    p95, p99 = (delays[int(len(delays) * share)] for share in (0.95, 0.99))
    print(
        f"event to {VIEWERS} viewers p95 {p95:.0f} ms (p50 {statistics.median(delays):.0f} ms, "
        f"p99 {p99:.0f} ms) at {RATE} events/s; viewers that missed or repeated any: {lost}; "
        f"idle {idle * 1000:.0f} ms CPU a second"
    )
    for wire in wires:
        wire.close()


async def burst(bench: Bench) -> None:
    wires = [await bench.viewer("burst") for _ in range(BURST_VIEWERS)]
    for wire in wires:
        await wire.read()
    before = peak = bench.memory()
    pauses = [0.5 if place < SLOW else 0.0 for place in range(BURST_VIEWERS)]
    started = time.time()
    took: list[float] = []

    async def follow_one(wire, pause):  # type: ignore[no-untyped-def]
        numbers, _ = await follow(wire, BURST, pause)
        took.append(time.time() - started)
        return numbers

    following = asyncio.gather(
        *(follow_one(wire, pause) for wire, pause in zip(wires, pauses, strict=True))
    )
    writing = asyncio.create_task(bench.write("burst", BURST, 500, 0.05))
    while not following.done():
        peak = max(peak, bench.memory())
        await asyncio.wait([following], timeout=0.1)
    await writing
    lost = sum(numbers != list(range(1, BURST + 1)) for numbers in following.result())
    print(
        f"{BURST:,} events in a burst to {BURST_VIEWERS} viewers, {SLOW} slow: viewers that missed "
        f"or repeated any: {lost}; {peak - before:.0f} MB more memory; the quick had all after "
        f"{sorted(took)[-SLOW - 1]:.1f} s, the slow after {max(took):.1f} s"
    )
    for wire in wires:
        wire.close()


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="dexweb-bench-") as var:
        bench = Bench(var)
        try:
            asyncio.run(steady(bench))
            asyncio.run(burst(bench))
        finally:
            bench.server.kill()
            bench.server.wait()


if __name__ == "__main__":
    main()
