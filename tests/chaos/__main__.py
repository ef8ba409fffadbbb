"""``python -m tests.chaos``: a Dexweb whose processes are killed at random, and what it still keeps.

Prints its seed first; the same seed kills the same kinds in the same order. Exit code 1: something
promised was broken, as told.
"""

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

VICTIMS = {"worker": 60, "workers": 4, "web": 12, "engine": 3, "all": 1}
# Only what never comes to rest meets it: a slow machine just takes longer.
CALM_LIMIT = 900.0
EVENTS_BETWEEN = 10
PATIENCE = 1.0


def main() -> int:
    asked = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    asked.add_argument("--kills", type=int, default=100)
    asked.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    given = asked.parse_args()
    print(f"seed {given.seed}", flush=True)
    var = Path(tempfile.mkdtemp(prefix="dexweb-chaos-"))
    try:
        return storm_on(var, given.seed, given.kills)
    finally:
        if not os.environ.get("DEXWEB_CHAOS_KEEP"):
            shutil.rmtree(var, ignore_errors=True)


def storm_on(var: Path, seed: int, kills: int) -> int:
    keep = os.environ.get("DEXWEB_CHAOS_KEEP", "")
    for name in [name for name in os.environ if name.startswith("DEXWEB_")]:
        del os.environ[name]
    os.environ.pop("DATABASE_URL", None)
    os.environ |= {
        "DEXWEB_VAR": str(var),
        "DEXWEB_CHAOS_KEEP": keep,
        "DEXWEB_HEARTBEAT_TIMEOUT": "2",
        "DEXWEB_ENGINE_TIMEOUT": "2",
        "DEXWEB_LOG_LEVEL": "WARNING",
        "DJANGO_SETTINGS_MODULE": "dexweb.settings",
    }
    import django

    django.setup()
    from dexweb.engine.embedded import free_port
    from tests.chaos import judge, world
    from tests.chaos.herd import Herd
    from tests.chaos.people import Person

    (var / "static").mkdir()
    shop, shop_port = var / "shop.sqlite3", free_port()
    shop_env = {**os.environ, "SHOP_DB": str(shop), "SHOP_DELAY": world.DELAYS}
    # It complains of every client that is killed while it answers.
    with (var / "shop.log").open("wb") as complaints:
        stranger = subprocess.Popen(
            [sys.executable, "-m", "tests.chaos.shop", str(shop_port)],
            env=shop_env,
            stderr=complaints,
        )
    herd = Herd(var, free_port())
    calm, leave = threading.Event(), threading.Event()
    begun = time.monotonic()
    try:
        herd.prepare()
        tokens = world.prepare(shop, f"http://127.0.0.1:{shop_port}/mcp")
        say(begun, "the world is ready")
        herd.start()
        people = [
            Person(name, token, herd.port, random.Random(f"{seed} {name}"), calm, leave)
            for name, token in tokens.items()
        ]
        threads = [threading.Thread(target=person.live, name=person.name) for person in people]
        for thread in threads:
            thread.start()
        say(begun, "the storm begins")
        try:
            storm(herd, random.Random(seed), kills)
            say(begun, f"the storm is over: {dict(herd.killed)}")
            calm.set()
            unrest = settle(herd, people)
        finally:
            leave.set()
            for thread in threads:
                thread.join()
        say(begun, "all came to rest" if not unrest else "not all came to rest")
        found = [*herd.died, *unrest, *judge.complaints(shop, people)]
        say(begun, summary(people))
    finally:
        herd.stop()
        stranger.kill()
        stranger.wait()
    for line in found:
        print(f"BROKEN {line}")
    if found:
        print("\n".join(last_words(var / "logs" / "web.log")))
    print(
        f"{sum(herd.killed.values())} kills, {len(found)} promises broken, seed {seed}", flush=True
    )
    return 1 if found else 0


def storm(herd, dice: random.Random, kills: int) -> None:
    """Kill at random moments until it is enough; what died is started again at once.

    The moments are counted in what happens and not in seconds, so that on a slow machine, too, things
    happen between them.
    """
    from tests.chaos.world import events

    while sum(herd.killed.values()) < kills:
        enough = events() + dice.expovariate(1 / EVENTS_BETWEEN)
        impatient = time.monotonic() + PATIENCE
        while events() < enough and time.monotonic() < impatient:
            herd.tend()
            time.sleep(0.01)
        herd.kill(dice.choices(list(VICTIMS), list(VICTIMS.values()))[0], dice)


def settle(herd, people) -> list[str]:
    """Wait until nothing is under way any more; otherwise, what still is."""
    give_up = time.monotonic() + CALM_LIMIT
    while time.monotonic() < give_up:
        herd.tend()
        unrest = under_way()
        if not unrest and not any(person.busy for person in people):
            return []
        time.sleep(0.1)
    return unrest or ["a person still waits for an answer"]


def under_way() -> list[str]:
    from approvals_app.models import Decision
    from sessions_app.models import Message, Session, Turn

    running = Session.objects.filter(status="running")
    open_decisions = Decision.objects.exclude(state__in=["delivered", "refused"])
    queued = Message.objects.filter(session__in=running, state="queued")
    turns = Turn.objects.filter(session__in=running, state="running")
    return [
        *(f"{one} is {one.state}" for one in open_decisions),
        *(f"{one.session_id} has a message in its queue" for one in queued),
        *(f"{one.session_id} is in turn {one.number}" for one in turns),
        *(f"{one.pk} is {one.phase}" for one in running.exclude(phase="idle")),
        *(f"{one.pk} has not begun" for one in running.filter(turn=0)),
    ]


def summary(people) -> str:
    from sessions_app.models import Session, ToolCall, Turn

    told = Counter(f"{told.what} {told.status}" for person in people for told in person.told)
    troubles = sum((person.troubles for person in people), Counter())
    outcomes = Counter(ToolCall.objects.values_list("effect", "outcome"))
    turns = Counter(Turn.objects.values_list("state", flat=True))
    return (
        f"{Session.objects.count()} sessions, turns {dict(turns)}, told {dict(told)}, "
        f"calls { {' '.join(key): n for key, n in sorted(outcomes.items())} }, "
        f"troubles {dict(troubles)}"
    )


def last_words(log: Path) -> list[str]:
    """The end of a log, for whoever looks into what was broken."""
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return [line for line in lines if "Service Unavailable" not in line][-150:]


def say(begun: float, words: str) -> None:
    print(f"{time.monotonic() - begun:5.1f} s  {words}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
