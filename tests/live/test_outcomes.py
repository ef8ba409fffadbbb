"""What becomes of a tool call, by its effect and by how far the attempt came: DESIGN's table, cell by
cell.

Each row is lived through by three sessions at once, whose one look-up counts as a read, as
idempotent and as a write.
"""

import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import psutil
import pytest
from django.contrib.auth.models import User

from dexweb.engine.errors import NoTurn
from sessions_app import actions
from sessions_app.models import Connection, Session
from tests.live.conftest import Live, WorkerProcess, assert_stream_is_whole, until

pytestmark = pytest.mark.usefixtures("standing_worker")

TOOL = "shop__lookup_order"
EFFECTS = ("read", "idempotent", "write")
DID_NOT_RUN = "It did not run and is safe to call again."
HANGS = "lookup_order=5m"


class Shift:
    """Three sessions in the same trouble."""

    def __init__(self, live: Live) -> None:
        self.live = live
        self.boss: User = live.person("boss")
        self.sessions: dict[str, Session] = {}
        self.worker: WorkerProcess | None = None

    def write(self, delay: str, order: str = "A-1042", **terms: Any) -> None:
        """The agents, one for each effect; written again, they count for the next attempt."""
        script = [{"calls": [{"tool": TOOL, "args": {"order_id": order}}]}, {"text": "Done."}]
        for effect in EFFECTS:
            tried = {} if effect == "write" else {"attempts": terms.get("attempts", 2)}
            mine = {**terms, **tried, "effect": effect, "backoff": terms.get("backoff", "1s")}
            if effect == "write":
                mine.pop("attempts", None)
            self.live.agent(
                script, delay, name=effect, pool="standing", tool_terms={"lookup_order": mine}
            )

    def start(self) -> None:
        for effect in EFFECTS:
            self.sessions[effect] = self.live.start(self.boss, effect)

    def at_work(self) -> None:
        """Until the shop itself has written that all three were asked."""
        until(lambda: len(self.live.ledger("lookups")) == 3, "three look-ups")

    def retrying(self) -> None:
        for session in (self.sessions["read"], self.sessions["idempotent"]):
            until(session.steps.filter(outcome="retrying").exists, self.live.state(session))

    def servers(self) -> list[psutil.Process]:
        """The processes that serve the shop of this test."""
        found = []
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.Error):
                if process.environ().get("SHOP_DB") == str(self.live.shop):
                    found.append(process)
        return found

    def cancel(self) -> None:
        for session in self.sessions.values():
            with suppress(NoTurn):
                actions.cancel_turn(self.boss, session.pk, "Enough", str(uuid.uuid4()))


def kill_the_worker(shift: Shift) -> None:
    shift.at_work()
    shift.write("", pool="doomed")
    assert shift.worker is not None
    shift.worker.kill()
    shift.live.worker("doomed")


def kill_the_server(shift: Shift) -> None:
    shift.at_work()
    servers = shift.servers()
    shift.write("")
    for server in servers:
        server.kill()


def take_the_server_away(shift: Shift) -> None:
    shift.at_work()
    Connection.objects.update(command=["false"])
    for server in shift.servers():
        server.kill()


def cancel_the_turn(shift: Shift) -> None:
    shift.at_work()
    shift.cancel()
    # The cancel reaches the tool: its server gets it, and is gone with its last call.
    until(lambda: not shift.servers(), "the shop to stop")


def cancel_between_attempts(shift: Shift) -> None:
    shift.at_work()
    shift.retrying()
    shift.cancel()


@dataclass(frozen=True)
class Row:
    """``cells``: (outcome, attempts that began, a piece of the words) by effect."""

    what: str
    cells: dict[str, tuple[str, int, str]]
    delay: str = ""
    terms: dict[str, Any] = field(default_factory=dict)
    then: Callable[[Shift], None] | None = None
    worker: str = ""


def all_three(outcome: str, attempts: int, words: str) -> dict[str, tuple[str, int, str]]:
    return dict.fromkeys(EFFECTS, (outcome, attempts, words))


AGAIN = {"read": ("completed", 2, ""), "idempotent": ("completed", 2, "")}
TABLE = [
    Row(
        "the tool raised a known error",
        all_three("failed", 1, "There is no order A-9."),
        terms={"order": "A-9"},
    ),
    Row(
        "no worker ever took it",
        all_three("failed", 0, DID_NOT_RUN),
        terms={"pool": "nobody", "schedule_to_start": "1s"},
    ),
    Row(
        "it hangs past its timeout",
        {
            "read": ("failed", 2, "was cut off: "),
            "idempotent": ("outcome_unknown", 2, "It may have run."),
            "write": ("outcome_unknown", 1, "It may have run."),
        },
        delay=HANGS,
        terms={"timeout": "1s"},
    ),
    Row(
        "its worker is killed",
        AGAIN | {"write": ("outcome_unknown", 1, "the worker that ran it went away")},
        delay=HANGS,
        terms={"pool": "doomed"},
        then=kill_the_worker,
        worker="doomed",
    ),
    Row(
        "its server dies in mid call",
        AGAIN | {"write": ("outcome_unknown", 1, "broke during the call")},
        delay=HANGS,
        then=kill_the_server,
    ),
    Row(
        "it is cut off, and its server is gone at the next attempt",
        {
            "read": ("failed", 2, DID_NOT_RUN),
            "idempotent": ("outcome_unknown", 2, "an earlier attempt was cut off"),
            "write": ("outcome_unknown", 1, "It may have run."),
        },
        delay=HANGS,
        then=take_the_server_away,
    ),
    Row(
        "its turn is canceled while it runs",
        {
            "read": ("canceled", 1, "It may be called again."),
            "idempotent": ("outcome_unknown", 1, "It may have run."),
            "write": ("outcome_unknown", 1, "It may have run."),
        },
        delay=HANGS,
        then=cancel_the_turn,
    ),
    Row(
        "its turn is canceled between two attempts",
        {
            "read": ("canceled", 1, "It may be called again."),
            "idempotent": ("outcome_unknown", 1, "It may have run."),
            "write": ("outcome_unknown", 1, "It may have run."),
        },
        delay=HANGS,
        terms={"timeout": "1s", "backoff": "1m"},
        then=cancel_between_attempts,
    ),
    Row(
        "it takes longer than its worker may be silent",
        all_three("completed", 1, ""),
        delay="lookup_order=5s",
        terms={"heartbeat": "2s"},
    ),
]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.what)
def test_a_call_ends_as_its_effect_and_its_attempts_say(live: Live, row: Row) -> None:
    shift = Shift(live)
    if row.worker:
        shift.worker = live.worker(row.worker)
    shift.write(row.delay, **row.terms)
    shift.start()
    if row.then:
        row.then(shift)
    told = 0
    for effect, (outcome, attempts, words) in row.cells.items():
        session = live.idle(shift.sessions[effect])
        call = live.call(session, "lookup_order")
        assert (effect, call.outcome, call.begun_attempt) == (effect, outcome, attempts), call.words
        assert words in call.words
        ran = sum(look_up[1] == call.call_id for look_up in live.ledger("lookups"))
        told += ran
        assert ran <= (1 if effect == "write" else 2)
        assert not (ran and effect != "read" and "did not run" in call.words)
        unknown = int(outcome == "outcome_unknown")
        assert session.unknown_outcomes == unknown
        assert session.steps.filter(type="RecordToolOutcomeUnknown").count() == unknown
        assert session.events.filter(type="tool.outcome_unknown").count() == unknown
        assert_stream_is_whole(session)
    # Every attempt, the second too, went out with its call's id.
    assert len(live.ledger("lookups")) == told
