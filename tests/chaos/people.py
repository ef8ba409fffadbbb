"""People at the REST API who try again with the same key, and remember exactly what they were told."""

import http.client
import json
import random
import threading
import time
import uuid
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tests.chaos.herd import HOST

PATIENCE = 900.0
SESSIONS_EACH = 5
QUEUE = 2


@dataclass(frozen=True)
class Told:
    """The last answer to one request. ``status`` 0: none that says anything came."""

    what: str
    target: str
    body: dict[str, Any]
    status: int
    answer: dict[str, Any]


@dataclass
class Person:
    """One thread that acts at random until `calm`, then only decides until `leave`."""

    name: str
    token: str
    port: int
    dice: random.Random
    calm: threading.Event
    leave: threading.Event
    told: list[Told] = field(default_factory=list)
    sessions: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    troubles: Counter[str] = field(default_factory=Counter)
    busy: bool = False
    decided: set[str] = field(default_factory=set)

    def live(self) -> None:
        try:
            while not self.leave.is_set():
                self.busy = True
                acted = self.decide_one() if self.calm.is_set() else self.act()
                self.busy = False
                self.leave.wait(0.03 if acted else 0.2)
        except Exception as error:
            self.broken.append(f"{self.name} broke on {error!r}")
            raise
        finally:
            self.busy = False

    def act(self) -> bool:
        chance = self.dice.random()
        if not self.sessions or (chance < 0.25 and len(self.sessions) < SESSIONS_EACH):
            return self.start()
        if chance < 0.4:
            return self.send()
        if chance < 0.43:
            return self.ask(
                "cancel", f"sessions/{self.dice.choice(self.sessions)}/cancel-turn/", {}
            )
        if chance < 0.45 and len(self.sessions) > 3:
            return self.stop()
        return self.decide_one()

    def start(self) -> bool:
        agent = self.dice.choices(["asks", "acts", "stall"], [5, 4, 1])[0]
        told = self.ask("start", "sessions/", {"agent": agent, "message": "Order A-1120 is late."})
        if told and told.status == 201:
            self.sessions.append(told.answer["id"])
        return True

    def send(self) -> bool:
        session = self.dice.choice(self.sessions)
        waiting = self.get(f"sessions/{session}/queue/")
        if waiting is None or len(waiting["results"]) >= QUEUE:
            return False
        return bool(self.ask("send", f"sessions/{session}/messages/", {"text": "And once more."}))

    def stop(self) -> bool:
        session = self.sessions.pop(self.dice.randrange(len(self.sessions)))
        kind = self.dice.choice(["complete", "cancel"])
        return bool(self.ask("stop", f"sessions/{session}/stop/", {"kind": kind}))

    def decide_one(self) -> bool:
        page = self.get("approvals/?state=pending&mine=true")
        waiting = [row for row in (page or {}).get("results", []) if row["id"] not in self.decided]
        if not waiting:
            return False
        row = self.dice.choice(waiting)
        if self.dice.random() < 0.2:
            self.ask("hold", f"approvals/{row['id']}/hold/", {"seconds": 4})
        if not self.calm.is_set() and self.dice.random() < 0.3:
            return True
        verdict = "approve" if self.dice.random() < 0.75 else "reject"
        body = {"verdict": verdict, "revision": row["revision"], "args_hash": row["args_hash"]}
        body |= {"reason": "Not this one."} if verdict == "reject" else {}
        # Some go home once they read that their decision is kept.
        trusts = self.dice.random() < 0.3
        told = self.ask("decide", f"approvals/{row['id']}/decide/", body, trusts)
        if told and told.answer.get("code") != "rpc_lock_conflict":
            self.decided.add(row["id"])
        return True

    # How ----------------------------------------------------------------------------------------

    def ask(self, what: str, path: str, body: dict[str, Any], trusts: bool = False) -> Told | None:
        """POST until an answer says how it stands; the same key each time."""
        key = str(uuid.UUID(int=self.dice.getrandbits(128)))
        give_up = time.monotonic() + PATIENCE
        while time.monotonic() < give_up:
            status, answer = self._send("POST", path, body, key)
            kept = trusts and answer.get("delivery") == "delivery_pending"
            if status and (kept or not (status >= 500 or answer.get("retryable"))):
                told = Told(what, path.split("/")[1], body, status, answer)
                self.told.append(told)
                return told
            time.sleep(self.dice.uniform(0.02, 0.2))
        self.broken.append(f"{self.name} never got an answer to {what} {path}: {status} {answer}")
        return None

    def get(self, path: str) -> dict[str, Any] | None:
        status, answer = self._send("GET", path, None, "")
        return answer if status == 200 else None

    def _send(self, method: str, path: str, body: Any, key: str) -> tuple[int, dict[str, Any]]:
        connection = http.client.HTTPConnection(HOST, self.port, timeout=20)
        headers = {"Authorization": f"Token {self.token}", "Content-Type": "application/json"}
        headers |= {"Idempotency-Key": key} if key else {}
        try:
            payload = None if body is None else json.dumps(body)
            connection.request(method, f"/api/v1/{path}", payload, headers)
            response = connection.getresponse()
            status, answer = response.status, json.loads(response.read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.troubles[type(error).__name__] += 1
            return 0, {}
        finally:
            connection.close()
        if status >= 400:
            self.troubles[f"{what_of(path)} {status} {answer.get('code')}"] += 1
        if status == 500:
            self.broken.append(f"{self.name} got a 500 from {method} {path}: {answer}")
        return status, answer


def what_of(path: str) -> str:
    return path.strip("/").split("/")[-1].partition("?")[0]
