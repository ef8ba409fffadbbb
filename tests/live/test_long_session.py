"""A session of very many turns, over many runs, with a context that is bounded."""

import asyncio
import uuid

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User

from dexweb.engine.client import SessionEngine
from sessions_app import actions
from sessions_app.flow import state
from sessions_app.llm.history import SUMMARY
from sessions_app.models import Session
from sessions_app.runs import runs_of
from sessions_app.steps.reading import conversation
from sessions_app.stream.read import events_after
from tests.live.conftest import Live, until

TURNS = 150
#: Entries of history after which a new run begins, and what one more turn may add to that.
HISTORY, ONE_TURN = 300, 150
WINDOW = 3_000
#: As many RPCs as the engine takes at once.
AT_ONCE = 8
ANSWERS = [f"Answer {number} of seven." for number in range(7)]


class Reader:
    """Reads on after its cursor, as a socket does, and is told of each number once."""

    def __init__(self, session: Session) -> None:
        self.session, self.seen = session, 0
        self.types: list[str] = []

    def read(self) -> None:
        page = events_after(self.session.pk, self.seen)
        told = [event["seq"] for event in page.events]
        left_out = [n for first, last in page.trimmed for n in range(first, last + 1)]
        numbers = sorted(told + left_out)
        assert numbers == list(range(self.seen + 1, self.seen + 1 + len(numbers)))
        self.seen += len(numbers)
        self.types += [event["type"] for event in page.events]


def run_through(live: Live, settings: object, turns: int) -> None:
    settings.DEXWEB_LIMIT_HISTORY_EVENTS = HISTORY  # type: ignore[attr-defined]
    script = [*({"text": text} for text in ANSWERS), {"repeat": True}]
    own = {"script": script, "word_delay": 0, "context_window": WINDOW}
    live.agent(script, pool="standing", more={"settings": own})
    ann = live.person("ann")
    session = live.start(ann, message="Message 1.")
    reader = Reader(session)
    sent: list[state.SendMessage] = []
    answers: list[state.RpcAnswer] = []
    while len(sent) < turns - 1:
        wave = [message(ann, len(sent) + 2 + n) for n in range(min(AT_ONCE, turns - 1 - len(sent)))]
        answers += send(session, wave)
        sent += wave
        # Some wait while runs end and begin; not all of them, or the queue would be the test.
        until_turn(session, len(sent) - 3 * AT_ONCE, reader)
    live.idle(session, turn=turns)
    reader.read()

    models = session.steps.filter(type="RunModel").order_by("position")
    said = list(models.values_list("text", flat=True))
    assert said == [ANSWERS[number % 7] for number in range(turns)]
    assert list(models.values_list("step_id", flat=True)) == [
        f"RunModel-{number}" for number in range(1, turns + 1)
    ]
    assert session.messages.filter(state="consumed").count() == turns
    assert session.turns.filter(state="completed").count() == turns
    positions = list(session.steps.order_by("position").values_list("position", flat=True))
    assert positions == list(range(1, len(positions) + 1))
    # What the first run was asked has its first answer in the last.
    assert send(session, sent[:2] + sent[-2:]) == answers[:2] + answers[-2:]
    assert session.messages.count() == turns

    runs = runs_of(session)
    assert len(runs) > turns * 10 // HISTORY
    assert [run.next for run in runs[:-1]] == [run.run_id for run in runs[1:]]
    assert reader.types.count("session.continued") == len(runs) - 1
    assert max(history_of(session, [run.run_id for run in runs])) < HISTORY + ONE_TURN
    session.refresh_from_db()
    assert session.context_tokens < WINDOW
    read = conversation(session)
    assert SUMMARY in str(read[0]) and len(read) < turns
    assert session.summaries.last().last_turn > turns // 2


def message(ann: User, number: int) -> state.SendMessage:
    return state.SendMessage(str(uuid.uuid4()), f"Message {number}.", actions.actor_of(ann))


@async_to_sync
async def send(session: Session, wave: list[state.SendMessage]) -> list[state.RpcAnswer]:
    engine = SessionEngine(timeout=30)
    return list(await asyncio.gather(*(engine.send_message(session.pk, rpc) for rpc in wave)))


@async_to_sync
async def history_of(session: Session, runs: list[str]) -> list[int]:
    client = await SessionEngine().client()
    handles = [client.get_workflow_handle(session.pk, run_id=run) for run in runs]
    return [(await handle.describe()).history_length for handle in handles]


def until_turn(session: Session, number: int, reader: Reader) -> None:
    def reached() -> bool:
        reader.read()
        session.refresh_from_db()
        return session.turn > number

    until(reached, f"turn {number}")


@pytest.mark.usefixtures("standing_worker")
def test_a_session_of_many_turns_loses_and_repeats_nothing(live: Live, settings: object) -> None:
    run_through(live, settings, TURNS)
