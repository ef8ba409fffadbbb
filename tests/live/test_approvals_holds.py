"""A hold is a person's name on an approval: others wait, take over, or see it lapse."""

import uuid
from datetime import datetime

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from approvals_app import holds
from approvals_app.models import AuditEntry, Interrupt
from dexweb.engine.errors import DecisionNotAllowed, InterruptAlreadyDecided, RpcLockConflict
from tests.live.conftest import Live, assert_stream_is_whole, until

pytestmark = pytest.mark.usefixtures("standing_worker")

REFUND = {"order_id": "A-1042", "amount": 20, "currency": "EUR", "reason": "late"}
SCRIPT = [{"calls": [{"tool": "shop__issue_refund", "args": REFUND}]}, {"text": "Done."}]


@pytest.fixture
def asked(live: Live) -> tuple[User, User, Interrupt]:
    live.agent(SCRIPT, pool="standing")
    ann, bob = (live.person(name, "refunds.approve") for name in ("ann", "bob"))
    return ann, bob, live.ask(live.start(ann))


def hold(person: User, interrupt: Interrupt, seconds: float = 60, request_id: str = "") -> None:
    holds.hold(person, interrupt.pk, seconds=seconds, request_id=request_id or str(uuid.uuid4()))


def events(interrupt: Interrupt, kind: str) -> list[dict[str, object]]:
    return [event.payload for event in interrupt.session.events.filter(type=f"approval.{kind}")]


def test_what_is_held_is_refused_to_others_who_are_told_by_whom_and_how_long(
    live: Live, asked: tuple[User, User, Interrupt]
) -> None:
    ann, bob, interrupt = asked
    hold(ann, interrupt)
    interrupt.refresh_from_db()
    assert (interrupt.hold_by, interrupt.hold_by_name) == (ann, "ann")
    for attempt in (
        lambda: live.decide(bob, interrupt),
        lambda: hold(bob, interrupt),
        lambda: holds.release(bob, interrupt.pk, request_id=str(uuid.uuid4())),
    ):
        with pytest.raises(RpcLockConflict) as conflict:
            attempt()
        said = conflict.value
        assert (said.lock_kind, said.holder) == ("hold", "ann")
        assert datetime.fromisoformat(said.since) < timezone.now()
        assert datetime.fromisoformat(said.until) == interrupt.hold_until
    interrupt.refresh_from_db()
    assert (interrupt.state, interrupt.hold_by) == ("pending", ann)


def test_ones_own_decision_lets_go(live: Live, asked: tuple[User, User, Interrupt]) -> None:
    ann, _, interrupt = asked
    hold(ann, interrupt)
    live.decide(ann, interrupt)
    live.idle(interrupt.session)
    interrupt.refresh_from_db()
    assert (interrupt.state, interrupt.hold_by, interrupt.hold_until) == ("approved", None, None)
    assert [event["by"] for event in events(interrupt, "released")] == ["ann"]
    assert len(live.ledger("refunds")) == 1
    assert_stream_is_whole(interrupt.session)


def test_a_hold_lapses_by_itself_and_everybody_sees_it(
    live: Live, asked: tuple[User, User, Interrupt]
) -> None:
    ann, bob, interrupt = asked
    hold(ann, interrupt, seconds=1)
    until(lambda: events(interrupt, "released"), "the hold to lapse")
    assert [event["by"] for event in events(interrupt, "released")] == [""]
    interrupt.refresh_from_db()
    assert (interrupt.hold_by, interrupt.hold_by_name) == (None, "")
    assert live.decide(bob, interrupt).state == "delivered"


def test_whoever_takes_over_is_named_and_it_is_audited(
    live: Live, asked: tuple[User, User, Interrupt]
) -> None:
    ann, bob, interrupt = asked
    hold(ann, interrupt)
    holds.take_over(bob, interrupt.pk, request_id=str(uuid.uuid4()))
    interrupt.refresh_from_db()
    assert interrupt.hold_by == bob
    assert [(e["by"], e["taken_from"]) for e in events(interrupt, "held")] == [
        ("ann", ""),
        ("bob", "ann"),
    ]
    entry = AuditEntry.objects.get(action="hold.taken_over")
    assert (entry.actor, entry.detail["taken_from"]) == (bob, "ann")
    with pytest.raises(RpcLockConflict) as conflict:
        live.decide(ann, interrupt)
    assert conflict.value.holder == "bob"
    live.decide(bob, interrupt)


def test_what_was_let_go_is_everybodys_again(
    live: Live, asked: tuple[User, User, Interrupt]
) -> None:
    ann, bob, interrupt = asked
    hold(ann, interrupt)
    holds.release(ann, interrupt.pk, request_id=str(uuid.uuid4()))
    assert live.decide(bob, interrupt).state == "delivered"


def test_the_same_hold_asked_for_twice_is_one(
    live: Live, asked: tuple[User, User, Interrupt]
) -> None:
    ann, _, interrupt = asked
    request_id = str(uuid.uuid4())
    hold(ann, interrupt, request_id=request_id)
    hold(ann, interrupt, request_id=request_id)
    assert len(events(interrupt, "held")) == 1
    assert AuditEntry.objects.filter(action="hold.taken").count() == 1


def test_only_who_may_decide_may_hold_and_only_what_is_open(
    live: Live, asked: tuple[User, User, Interrupt]
) -> None:
    ann, bob, interrupt = asked
    with pytest.raises(DecisionNotAllowed):
        hold(live.person("cy"), interrupt)
    live.decide(ann, interrupt)
    with pytest.raises(InterruptAlreadyDecided):
        hold(bob, interrupt)
    assert events(interrupt, "held") == []


def test_a_hold_does_not_stop_the_deadline(live: Live) -> None:
    live.agent(SCRIPT, pool="standing", deadline="2s")
    ann = live.person("ann", "refunds.approve")
    interrupt = live.ask(live.start(ann))
    hold(ann, interrupt)
    live.idle(interrupt.session)
    interrupt.refresh_from_db()
    assert (interrupt.state, interrupt.hold_by) == ("expired", None)
    assert live.ledger("refunds") == []
