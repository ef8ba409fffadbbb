"""Whatever many people ask of a session at once, some order of it explains all that they were told.

The events give the order in which the Flow took what it accepted. It is played to a small model of a
session (`order_model`), which must give the same answers and end in the same rows; it must respect
real time; and every refusal must have been true at a moment between its question and its answer.

DEXWEB_TEST_ORDER_SEED repeats a run's choices, DEXWEB_TEST_ORDER_ROUNDS makes it longer.
"""

import asyncio
import copy
import json
import os
import random
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async

from dexweb.engine.client import SessionEngine
from dexweb.engine.errors import DexwebError, EngineUnavailable, NoWorker
from sessions_app import actions, arguments
from sessions_app.flow import state
from sessions_app.flow.terms import Actor
from sessions_app.models import AgentEvent, Session
from tests.live.conftest import Live, assert_stream_is_whole, until
from tests.live.order_model import Model

pytestmark = pytest.mark.usefixtures("standing_worker")

REFUND = {"order_id": "A-1042", "amount": 20, "currency": "EUR", "reason": "late"}
ISSUE = {"tool": "shop__issue_refund", "args": REFUND}
SCRIPT: list[dict[str, Any]] = [
    {"calls": [ISSUE, ISSUE]},
    {"text": "Done."},
    {"calls": [{"tool": "ask_user", "args": {"questions": [{"question": "Why?"}]}}]},
    {"text": "Thank you."},
    {"calls": [{"tool": "wait_for", "args": {"duration": "1h"}}, ISSUE]},
    {"text": "Done.", "repeat": True},
]
PEOPLE = ["ann", "bob", "cy", "dee", "eve"]
ROUNDS = int(os.environ.get("DEXWEB_TEST_ORDER_ROUNDS", "12"))
METHODS = {
    state.SendMessage: "send_message",
    state.EditQueued: "edit_queued",
    state.DeleteQueued: "delete_queued",
    state.Steer: "steer",
    state.UpdateSettings: "update_settings",
    state.ResolveInterrupt: "resolve_interrupt",
    state.AnswerQuestion: "answer_question",
    state.SkipWait: "skip_wait",
    state.HoldInterrupt: "hold_interrupt",
    state.ReleaseInterrupt: "release_interrupt",
    state.ExtendDeadline: "extend_deadline",
    state.CancelTurn: "cancel_turn",
    state.RaiseSpend: "raise_spend",
    state.Stop: "stop",
}


@dataclass
class Told:
    """One time that somebody asked, and what they were told. Times are of one steady clock."""

    rpc: Any
    sent: float
    answered: float = 0.0
    answer: state.RpcAnswer | None = None
    refusal: DexwebError | None = None


@dataclass
class Table:
    """A session, and everything that anybody asked of it."""

    session: Session
    told: list[Told] = field(default_factory=list)

    async def ask(self, rpc: Any) -> None:
        told = Told(rpc, time.monotonic())
        while told.answered == 0.0:
            try:
                method = getattr(SessionEngine(), METHODS[type(rpc)])
                told.answer = await method(self.session.pk, rpc)
                if told.answer.state == "accepted":
                    # Not done yet: under the same id one may ask how it ended.
                    continue
            except (EngineUnavailable, NoWorker):
                continue
            except DexwebError as refusal:
                told.refusal = refusal
            told.answered = time.monotonic()
        self.told.append(told)


@dataclass
class Person:
    """Somebody who does one thing after the other, whatever comes to their mind."""

    actor: Actor
    dice: random.Random
    table: Table

    async def play(self, rounds: int, stops: bool) -> None:
        for number in range(rounds):
            earlier = [told.rpc for told in self.table.told]
            if earlier and self.dice.random() < 0.1:
                await self.table.ask(self.dice.choice(earlier))
                continue
            late = stops and number > rounds * 0.8 and self.dice.random() < 0.3
            rpc = self.stop() if late else await self.any()
            # One in ten is impatient and presses twice.
            times = 2 if self.dice.random() < 0.1 else 1
            await asyncio.gather(*(self.table.ask(rpc) for _ in range(times)))

    async def any(self) -> Any:
        kinds = [self.on_queue, self.on_interrupt, self.on_interrupt, self.other]
        return await sync_to_async(self.dice.choice(kinds))()

    def key(self) -> str:
        return str(uuid.UUID(int=self.dice.getrandbits(128)))

    def stop(self) -> state.Stop:
        kind = self.dice.choice(["complete", "cancel", "fail"])
        return state.Stop(self.key(), kind, self.actor, self.key())

    def on_queue(self) -> Any:
        rows = self.table.session.messages
        ids = list(
            rows.filter(state__in=["queued", "steered"]).values_list("message_id", flat=True)
        )
        if self.dice.random() < 0.2:
            ids = [self.key(), rows.first().message_id]
        if not ids or self.dice.random() < 0.45:
            text = self.dice.choice([self.key()] * 9 + [" "])
            return state.SendMessage(self.key(), text, self.actor)
        target = self.dice.choice(ids)
        if self.dice.random() < 0.4:
            return state.EditQueued(self.key(), target, self.key(), self.actor)
        kind = self.dice.choice([state.DeleteQueued, state.Steer])
        return kind(self.key(), target, self.actor)

    def on_interrupt(self) -> Any:
        rows = self.table.session.interrupts
        chosen = list(rows.pending())
        if not chosen or self.dice.random() < 0.1:
            chosen = list(rows.all())
        if not chosen or self.dice.random() < 0.05:
            return state.ReleaseInterrupt(self.key(), f"apr-{self.key()}", self.actor)
        ask = self.dice.choice(chosen)
        if ask.is_question and self.dice.random() < 0.4:
            answer = self.dice.choice([self.key()] * 4 + [" "])
            return state.AnswerQuestion(self.key(), ask.pk, 1, [[answer]], self.actor)
        what = self.dice.choices(
            [self.vote, self.hold, self.release, self.extend], weights=[5, 3, 1, 2]
        )
        return what[0](ask)

    def vote(self, ask: Any) -> state.ResolveInterrupt:
        verdict = self.dice.choice(["approve"] * 4 + ["reject"])
        edited = ""
        if verdict == "approve" and self.dice.random() < 0.2:
            amount = self.dice.randint(1, 19)
            edited = arguments.as_text(arguments.parse(json.dumps({**REFUND, "amount": amount})))
        return state.ResolveInterrupt(
            self.key(),
            ask.pk,
            ask.revision,
            ask.args_hash,
            verdict,  # type: ignore[arg-type]
            self.actor,
            self.key(),
            edited_args=edited,
            edited_hash=arguments.hash_of(arguments.parse(edited)) if edited else "",
        )

    def hold(self, ask: Any) -> state.HoldInterrupt:
        seconds, takes = self.dice.choice([1.0, 60.0]), self.dice.random() < 0.3
        return state.HoldInterrupt(self.key(), ask.pk, self.actor, seconds, takes)

    def release(self, ask: Any) -> state.ReleaseInterrupt:
        return state.ReleaseInterrupt(self.key(), ask.pk, self.actor)

    def extend(self, ask: Any) -> state.ExtendDeadline:
        until = datetime.now(UTC) + timedelta(minutes=self.dice.choice([20, 60, 90]))
        return state.ExtendDeadline(self.key(), ask.pk, until.isoformat(), self.actor)

    def other(self) -> Any:
        session = Session.objects.get(pk=self.table.session.pk)
        kind = self.dice.random()
        if kind < 0.4:
            patch = json.dumps({"instructions": self.key()})
            return state.UpdateSettings(self.key(), patch, session.settings_revision, self.actor)
        if kind < 0.6:
            return state.CancelTurn(self.key(), self.actor, self.key())
        if kind < 0.7:
            return state.RaiseSpend(self.key(), "1", self.actor)
        steps = session.steps.filter(type="DurableWait").order_by("-position")[:2]
        step_id = self.dice.choice([*(step.step_id for step in steps), "DurableWait-99"])
        return state.SkipWait(self.key(), step_id, self.actor)


# The judge --------------------------------------------------------------------------------------


class Judge:
    """Holds what people were told against the events, the model and the rows."""

    def __init__(self, table: Table) -> None:
        self.session = Session.objects.get(pk=table.session.pk)
        self.events = list(self.session.events.order_by("seq"))
        self.told = table.told
        #: What each accepted request was told first; the same request again is told the same.
        self.accepted: dict[str, Told] = {}
        #: Where in the events each accepted request stands, from 0.
        self.place: dict[str, int] = {}
        #: The model before each event, and after all of them.
        self.states: list[Model] = []

    def judge(self) -> None:
        self.one_answer_each()
        self.place_all()
        self.nothing_that_was_refused_happened()
        self.real_time_is_respected()
        self.the_model_answers_the_same()
        for told in self.told:
            if told.refusal is not None:
                assert self.was_true(told), f"{told} was refused for no reason"
        self.what_changed_nothing_had_nothing_to_change()
        self.rows_are_the_models()

    def one_answer_each(self) -> None:
        for told in sorted(self.told, key=lambda told: told.answered):
            first = self.accepted.get(told.rpc.request_id)
            if told.answer is None:
                assert first is None or told.sent < first.answered, f"{told} after {first}"
            elif first is None:
                self.accepted[told.rpc.request_id] = copy.copy(told)
            else:
                assert told.answer == first.answer
                first.sent = min(first.sent, told.sent)

    def place_all(self) -> None:
        for request_id, told in self.accepted.items():
            found = [n for n, event in enumerate(self.events) if _is_of(event, told)]
            assert len(found) <= 1, told
            if found:
                self.place[request_id] = found[0]
            elif not isinstance(told.rpc, state.Steer | state.ReleaseInterrupt | state.Stop):
                raise AssertionError(f"{told} was accepted and left nothing")

    def nothing_that_was_refused_happened(self) -> None:
        placed = set(self.place.values())
        stops = {told.rpc.reason for told in self.accepted.values() if _ends(told.rpc)}
        for number, event in enumerate(self.events[1:], 1):
            if number in placed or event.type not in ASKED_FOR or not _by_person(event):
                continue
            # What the session began with; the model takes one such, and no other.
            first = event.type == "message.queued"
            assert first or event.payload.get("reason") in stops, (
                f"nobody asked for {event.payload}"
            )

    def real_time_is_respected(self) -> None:
        latest = 0.0
        for request_id, number in sorted(self.place.items(), key=lambda item: item[1]):
            told = self.accepted[request_id]
            assert told.answered > latest, (
                f"{told} at {number} was answered before what precedes it"
            )
            latest = max(latest, told.sent)
        for told in self.accepted.values():
            if isinstance(told.rpc, state.SendMessage | state.UpdateSettings):
                assert not any(stop.answered < told.sent for stop in self.stops())

    def the_model_answers_the_same(self) -> None:
        model = Model(self.session.pk, arguments.hash_of(REFUND))
        by_place = {number: self.accepted[key] for key, number in self.place.items()}
        for number, event in enumerate(self.events):
            self.states.append(copy.deepcopy(model))
            told = by_place.get(number)
            if told is None:
                model.happen(event.type, event.payload, event.step_id, event.at)
                continue
            assert model.refusals(told.rpc, event.at) == {}, f"{told} should have been refused"
            assert told.answer is not None
            assert model.do(told.rpc, event.at) == (told.answer.id, told.answer.state), told
        self.states.append(model)

    def window(self, told: Told) -> Iterator[Model]:
        """The model at every moment that may lie between question and answer."""
        first, last = 0, len(self.events)
        for request_id, number in self.place.items():
            other = self.accepted[request_id]
            if other.answered < told.sent:
                first = max(first, number + 1)
            if other.sent > told.answered:
                last = min(last, number)
        return iter(self.states[first : last + 1])

    def was_true(self, told: Told) -> bool:
        refusal = told.refusal
        assert refusal is not None
        said = refusal.details()
        if refusal.code == "session_closed":
            return any(stop.sent < told.answered for stop in self.stops())
        if refusal.code == "rpc_lock_conflict" and said["lock_kind"] == "rpc":
            return any(self.held_it(other, told) for other in self.accepted.values())
        if refusal.code == "no_turn" and any(
            _ends(stop.rpc) and stop.sent < told.answered for stop in self.stops()
        ):
            # A turn that ends with its session is not to be canceled once more.
            return True
        for model in self.window(told):
            true = model.refusals(told.rpc).get(refusal.code)
            if true is not None and true.items() <= said.items():
                return True
        return False

    def held_it(self, other: Told, told: Told) -> bool:
        same_time = other.sent < told.answered and told.sent < other.answered
        return same_time and other.rpc.actor.name == told.refusal.holder  # type: ignore[union-attr]

    def what_changed_nothing_had_nothing_to_change(self) -> None:
        for request_id, told in self.accepted.items():
            if request_id in self.place or isinstance(told.rpc, state.Stop):
                continue
            assert any(
                model.changes_nothing(told.rpc) and model.refusals(told.rpc) == {}
                for model in self.window(told)
            ), f"{told} left nothing, and had something to do"

    def stops(self) -> list[Told]:
        return [told for told in self.accepted.values() if isinstance(told.rpc, state.Stop)]

    def rows_are_the_models(self) -> None:
        session, model = self.session, self.states[-1]
        assert model.closed == session.status
        assert (session.settings_revision, session.settings) == (model.revision, model.settings)
        assert {row.number: row.state for row in session.turns.all()} == model.turns
        assert {
            row.message_id: (row.text, row.state, row.edited_by_name)
            for row in session.messages.all()
        } == {key: (sent.text, sent.state, sent.edited_by) for key, sent in model.messages.items()}
        assert {
            row.pk: (row.state, row.decided_by_name, row.revision, row.hold_by_name)
            for row in session.interrupts.all()
        } == {
            key: ("invalidated" if ask.voided else ask.state, ask.by, ask.revision, "")
            for key, ask in model.asks.items()
        }
        for stop in self.stops():
            assert stop.answer is not None
            assert stop.answer.state == session.status or stop.rpc.kind == "complete"


#: Events that only a person's RPC can bring about; some of them only if they name a person.
ASKED_FOR = {
    "message.queued",
    "message.edited",
    "message.deleted",
    "message.steered",
    "settings.changed",
    "approval.held",
    "approval.voted",
    "question.answered",
    "turn.canceled",
    "session.closed",
}


def _by_person(event: AgentEvent) -> bool:
    return event.type not in ("turn.canceled", "session.closed") or bool(event.payload["by"])


def _ends(rpc: Any) -> bool:
    return isinstance(rpc, state.Stop)


def _is_of(event: AgentEvent, told: Told) -> bool:
    """Whether ``event`` is what the accepted ``told`` did. (Its `at` is when the Flow took it.)"""
    rpc, said = told.rpc, event.payload
    match rpc:
        case state.SendMessage():
            return event.type == "message.queued" and said["message_id"] == rpc.request_id
        case state.UpdateSettings():
            return event.type == "settings.changed" and said["patch"] == json.loads(rpc.patch)
        case state.CancelTurn():
            return event.type == "turn.canceled" and said["reason"] == rpc.reason
        case state.Stop():
            # To complete is a promise: it is answered long before, and another may come first.
            ends_now = event.type == "session.closed" and rpc.kind != "complete"
            return ends_now and said["reason"] == rpc.reason
    assert told.answer is not None
    if event.at != datetime.fromisoformat(told.answer.at):
        return False
    match rpc:
        case state.EditQueued():
            return event.type == "message.edited" and said["text"] == rpc.text
        case state.DeleteQueued():
            return event.type == "message.deleted" and said["message_id"] == rpc.message_id
        case state.Steer():
            return event.type == "message.steered" and said["message_id"] == rpc.message_id
        case state.SkipWait():
            return event.type == "timer.fired" and event.step_id == rpc.step_id
        case state.ExtendDeadline():
            return said.get("deadline") == rpc.until and event.type == "step.changed"
    types = {
        state.ResolveInterrupt: "approval.voted",
        state.AnswerQuestion: "question.answered",
        state.HoldInterrupt: "approval.held",
        state.ReleaseInterrupt: "approval.released",
    }
    mine = (said.get("interrupt_id"), said.get("by")) == (rpc.interrupt_id, rpc.actor.name)
    return mine and event.type == types.get(type(rpc))


def test_some_order_of_what_was_accepted_explains_all_that_people_were_told(live: Live) -> None:
    seed = int(os.environ.get("DEXWEB_TEST_ORDER_SEED", "0")) or random.randrange(1, 10**6)
    print(f"DEXWEB_TEST_ORDER_SEED={seed}")
    approval = {"approve_n": 2, "editable": True}
    agent = live.agent(SCRIPT, pool="standing", approval=approval)
    people = [actions.actor_of(live.person(name, "refunds.approve")) for name in PEOPLE]
    starter = live.person("starter")
    tables = [Table(live.start(starter, agent, "First.")) for _ in range(3)]
    for table in tables:
        live.ask(table.session)

    async def play() -> None:
        await asyncio.gather(
            *(
                Person(actor, random.Random(f"{seed}/{number}/{actor.name}"), table).play(
                    ROUNDS, stops=number > 0
                )
                for number, table in enumerate(tables)
                for actor in people
            )
        )
        last = [state.Stop(str(uuid.uuid4()), "cancel", people[0], "last") for _ in tables]
        await asyncio.gather(*(table.ask(rpc) for table, rpc in zip(tables, last, strict=True)))

    async_to_sync(play)()
    for table in tables:
        until(lambda table=table: not Session.objects.get(pk=table.session.pk).open, "its end")
        Judge(table).judge()
        assert_stream_is_whole(table.session)
    accepted = [told.answer is not None for table in tables for told in table.told]
    assert accepted.count(True) > 20 and accepted.count(False) > 20
