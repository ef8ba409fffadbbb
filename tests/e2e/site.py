"""A whole Dexweb with its demo, as `manage.py up` runs it, for the browser tests."""

import json
import os
import signal
import subprocess
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from tests.dexweb.processes import ROOT, Place

PASSWORD = "a password for the tests"
STORY = " ".join(f"word{number}" for number in range(160))
ROUND = [{"tool": "store__lookup_order", "args": {"order_id": "A-1042"}}] * 12
ROUNDS = [{"text": STORY, "calls": ROUND}, *([{"text": "More.", "calls": ROUND}] * 3)]
LAST_WORDS = "Everything was looked up."
# A second person who may approve, one who may do everything, what words cost, and a key to the API.
PREPARE = """
from django.contrib.auth.models import Group, User
from rest_framework.authtoken.models import Token
from sessions_app.models import ModelPrice
demo = User.objects.get(username="demo")
ada = User(username="ada", password=demo.password)
ada.save()
ada.groups.set(Group.objects.filter(name__in=["Operators", "Approvers"]))
User.objects.create(username="root", is_superuser=True, is_staff=True, password=demo.password)
ModelPrice.objects.create(name="demo:script", input=100, output=1000)
print(Token.objects.create(user=demo).key)
"""


class Site:
    """The running site: its address, its processes, and the API as demo."""

    def __init__(self, var: Path) -> None:
        self.place = Place(var)
        self.url = self.place.url
        self.running = self.place.up(
            DEXWEB_DEMO="1", DEXWEB_DEMO_PASSWORD=PASSWORD, DEXWEB_ENGINE_TIMEOUT="2"
        )
        try:
            self.running.line("Dexweb is ready", limit=180)
            with ThreadPoolExecutor() as both:
                prepared = both.submit(self.manage, "shell", "--no-imports", "-c", PREPARE)
                both.submit(self._import_agents).result()
            self.token = prepared.result().split()[-1]
        except BaseException:
            self.running.close()
            raise

    def manage(self, *words: str) -> str:
        """What `manage.py` prints on this site's data."""
        done = subprocess.run(
            [sys.executable, "manage.py", *words],
            cwd=ROOT,
            env={**os.environ, **self.place.env},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def pid(self, name: str) -> int:
        """The process of the engine, the worker or the web server."""
        return self.place.processes()[name]

    def kill(self, name: str) -> None:
        """As a crash would; `up` starts it again."""
        os.kill(self.pid(name), signal.SIGKILL)

    def api(self, address: str, body: dict[str, Any] | None = None) -> Any:
        """What the API answers demo; a body is POSTed."""
        request = Request(
            f"{self.url}/api/v1/{address}",
            None if body is None else json.dumps(body).encode(),
            {
                "Authorization": f"Token {self.token}",
                "Content-Type": "application/json",
                "Idempotency-Key": str(uuid.uuid4()),
            },
        )
        with urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def start(self, agent: str, message: str = "Please do it.") -> str:
        """The address of a new session of demo's."""
        session = self.api("sessions/", {"agent": agent, "message": message})
        return f"/sessions/{session['id']}/"

    def events(self, address: str) -> list[dict[str, Any]]:
        """Every event that is kept of the session at this address, in order."""
        found: list[dict[str, Any]] = []
        while True:
            after = found[-1]["seq"] if found else 0
            page = self.api(f"{address.strip('/')}/events?after={after}")
            if not page["results"]:
                return found
            found += page["results"]

    def stop(self) -> None:
        """At once, by a second Ctrl-C: the seeded look-ups would take minutes yet."""
        try:
            self.running.send(signal.SIGINT)
            self.running.line("Stopping …")
        finally:
            self.running.stop()

    def _import_agents(self) -> None:
        text = Path(__file__).with_name("agents.yaml").read_text()
        rounds = json.dumps([*ROUNDS, {"text": LAST_WORDS}])
        for name, value in {
            "$SHOP_DB": str(self.place.var / "store.sqlite3"),
            "$STORY": STORY,
            "$ROUNDS": rounds,
        }.items():
            text = text.replace(name, value)
        file = self.place.var / "agents.yaml"
        file.write_text(text)
        self.manage("import_agents", str(file))
