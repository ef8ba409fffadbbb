"""A decision is on one call, as it was shown, and on no other."""

import threading
import time
import uuid

import pytest
from django.db import connections
from django.utils import timezone

from approvals_app.models import Decision
from approvals_app.outbox import sweep
from dexweb.engine.errors import EngineUnavailable, InterruptExpired
from sessions_app import actions
from sessions_app.models import Agent
from tests.live.conftest import Live, assert_stream_is_whole, until

pytestmark = pytest.mark.usefixtures("standing_worker")

REFUND = {"order_id": "A-1042", "amount": 20, "currency": "EUR", "reason": "late"}
ISSUE = {"tool": "shop__issue_refund", "args": REFUND}
LOOKUP = {"tool": "shop__lookup_order", "args": {"order_id": "A-1042"}}


def asked(live: Live, session, count: int):
    """The open approvals, once there are ``count``, in the order in which they were asked for."""
    until(lambda: session.interrupts.pending().count() == count, f"{count} approvals")
    return list(session.interrupts.pending().order_by("step_id"))


def test_of_two_equal_calls_each_has_its_own_decision(live: Live) -> None:
    live.agent([{"calls": [ISSUE, ISSUE]}, {"text": "Done."}], pool="standing")
    boss = live.person("boss", "refunds.approve")
    session = live.start(boss)
    first, second = asked(live, session, 2)
    assert (first.args_hash, first.tool) == (second.args_hash, second.tool)
    assert first.call_id != second.call_id

    live.decide(boss, second, "reject", "Once is enough.")
    until(lambda: session.calls.filter(outcome="rejected").exists(), "the rejection")
    first.refresh_from_db()
    assert first.state == "pending"
    assert live.ledger("refunds") == []

    live.decide(boss, first)
    live.idle(session)
    outcomes = dict(session.calls.values_list("call_id", "outcome"))
    assert outcomes == {first.call_id: "completed", second.call_id: "rejected"}
    assert len(live.ledger("refunds")) == 1


def test_a_mixed_batch_gives_each_call_its_own_end_and_is_joined(live: Live) -> None:
    live.agent([{"calls": [ISSUE, LOOKUP, ISSUE]}, {"text": "Done."}], pool="standing")
    boss = live.person("boss", "refunds.approve")
    session = live.start(boss)
    first, second = asked(live, session, 2)
    until(lambda: session.calls.filter(outcome="completed").exists(), "the look-up")
    assert not session.steps.filter(step_id="RunModel-2").exists()

    live.decide(boss, first, "reject", "Not this one.")
    live.decide(boss, second)
    live.idle(session)
    by_position = session.calls.order_by("position").values_list("outcome", flat=True)
    assert list(by_position) == ["rejected", "completed", "completed"]
    assert session.steps.get(step_id="ResumeTurn-1").detail == "3 results"
    assert_stream_is_whole(session)


def test_equal_calls_of_two_sessions_are_not_mixed_up(live: Live) -> None:
    live.agent([{"calls": [ISSUE]}, {"text": "Done."}], pool="standing")
    boss = live.person("boss", "refunds.approve")
    here, there = live.start(boss), live.start(boss)
    mine, other = live.ask(here), live.ask(there)
    assert mine.args_hash == other.args_hash
    live.decide(boss, mine)
    live.idle(here)
    other.refresh_from_db()
    assert other.state == "pending"
    assert there.calls.get().outcome == ""


def test_saying_yes_in_the_conversation_decides_nothing(live: Live) -> None:
    live.agent([{"calls": [ISSUE]}, {"text": "Done."}, {"text": "Yes?"}], pool="standing")
    boss = live.person("boss", "refunds.approve")
    session = live.start(boss)
    interrupt = live.ask(session)
    said = actions.send_message(boss, session.pk, "Yes, approve it.", str(uuid.uuid4()))
    assert said.state == "queued"
    interrupt.refresh_from_db()
    assert interrupt.state == "pending"
    assert live.ledger("refunds") == []

    live.decide(boss, interrupt, "reject", "Said where it counts.")
    live.idle(session, turn=2)
    assert session.messages.get(message_id=said.id).turn == 2


def test_a_rejection_stands_whatever_the_policy_says_by_now(live: Live) -> None:
    live.agent([{"calls": [ISSUE]}, {"text": "Done."}], pool="standing")
    boss = live.person("boss", "refunds.approve")
    session = live.start(boss)
    interrupt = live.ask(session)
    Agent.objects.get(name="desk").tools.update(needs_approval=False)
    live.decide(boss, interrupt, "reject", "No.")
    live.idle(session)
    assert live.call(session, "issue_refund").outcome == "rejected"
    assert live.ledger("refunds") == []


def test_a_policy_that_changed_while_it_waited_asks_anew_for_the_key_of_now(live: Live) -> None:
    live.agent([{"calls": [ISSUE]}, {"text": "Done."}], pool="standing")
    clerk = live.person("clerk", "refunds.approve")
    boss = live.person("boss", "refunds.large")
    session = live.start(clerk)
    interrupt = live.ask(session)
    Agent.objects.get(name="desk").tools.update(permission="refunds.large")
    live.decide(clerk, interrupt)

    fresh = until(
        lambda: session.interrupts.pending().exclude(pk=interrupt.pk).first(), "a fresh request"
    )
    interrupt.refresh_from_db()
    assert (interrupt.state, fresh.permission) == ("invalidated", "refunds.large")
    told = session.events.get(type="tool.invalidated").payload["words"]
    assert "refunds.large" in told
    assert live.ledger("refunds") == []
    live.decide(boss, fresh)
    live.idle(session)
    assert len(live.ledger("refunds")) == 1
    assert session.interrupts.count() == 2


def test_where_decision_and_deadline_meet_there_is_one_outcome_and_all_agree(live: Live) -> None:
    live.agent([{"calls": [ISSUE]}, {"text": "Over."}], deadline="2s", pool="standing")
    boss = live.person("boss", "refunds.approve")
    sessions = [live.start(boss) for _ in range(4)]
    waits = [live.ask(session) for session in sessions]
    results: dict[str, object] = {}

    def press(interrupt, early: float) -> None:
        moment = (interrupt.deadline - timezone.now()).total_seconds() - early
        time.sleep(max(0.0, moment))
        try:
            results[interrupt.pk] = live.decide(boss, interrupt)
        except Exception as error:
            results[interrupt.pk] = error
        finally:
            connections.close_all()

    threads = [
        threading.Thread(target=press, args=(interrupt, 0.06 - 0.03 * number))
        for number, interrupt in enumerate(waits)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    approved = 0
    for session, interrupt in zip(sessions, waits, strict=True):
        live.idle(session)
        interrupt.refresh_from_db()
        result = results[interrupt.pk]
        assert interrupt.state in ("approved", "expired")
        expected = Decision if interrupt.state == "approved" else InterruptExpired
        assert isinstance(result, expected), result
        outcome = "completed" if interrupt.state == "approved" else "expired"
        assert session.calls.get().outcome == outcome
        ends = session.events.filter(type__in=["approval.decided", "approval.expired"])
        assert ends.count() == 1
        approved += interrupt.state == "approved"
    assert len(live.ledger("refunds")) == approved


def test_several_sweepers_deliver_a_kept_decision_once(live: Live, settings: object) -> None:
    live.agent([{"calls": [ISSUE]}, {"text": "Done."}], pool="standing")
    boss = live.person("boss", "refunds.approve")
    session = live.start(boss)
    interrupt = live.ask(session)
    address = settings.DEXWEB_TEMPORAL_ADDRESS  # type: ignore[attr-defined]
    settings.DEXWEB_TEMPORAL_ADDRESS = "127.0.0.1:9"  # type: ignore[attr-defined]
    settings.DEXWEB_ENGINE_TIMEOUT = 1.0  # type: ignore[attr-defined]
    with pytest.raises(EngineUnavailable):
        live.decide(boss, interrupt)
    settings.DEXWEB_TEMPORAL_ADDRESS = address  # type: ignore[attr-defined]

    def sweep_here() -> None:
        sweep()
        connections.close_all()

    # Beside these, the standing worker sweeps too.
    threads = [threading.Thread(target=sweep_here) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    live.idle(session)
    assert interrupt.decisions.get().state == "delivered"
    assert session.events.filter(type="approval.decided").count() == 1
    assert len(live.ledger("refunds")) == 1
    assert sweep() == 0
