"""Deciding on the real engine: one outcome, one run, and everybody is told the truth."""

import threading
import uuid

import pytest
from django.contrib.auth.models import User
from django.db import connections

from approvals_app.models import Decision, Interrupt
from dexweb.engine.errors import (
    DecisionNotAllowed,
    DexwebError,
    EngineUnavailable,
    InterruptAlreadyDecided,
    InterruptExpired,
    InterruptNotFound,
    KeyReused,
    ReasonRequired,
    StaleInterrupt,
)
from tests.live.conftest import Live, assert_stream_is_whole, until

pytestmark = pytest.mark.usefixtures("standing_worker")

REFUND = {"order_id": "A-1042", "amount": 20, "currency": "EUR", "reason": "late"}


@pytest.fixture
def desk(live: Live) -> Live:
    live.agent(
        [
            {"text": "I'll refund it.", "calls": [{"tool": "shop__issue_refund", "args": REFUND}]},
            {"text": "That is all I can do."},
        ],
        pool="standing",
    )
    return live


def test_an_approved_write_runs_once_and_the_turn_goes_on(desk: Live) -> None:
    boss = desk.person("boss", "refunds.approve")
    session = desk.start(boss)
    interrupt = desk.ask(session)
    assert desk.ledger("refunds") == []
    assert interrupt.why == "I'll refund it."

    assert desk.decide(boss, interrupt).state == "delivered"
    desk.idle(session)

    assert len(desk.ledger("refunds")) == 1
    assert desk.call(session, "issue_refund").outcome == "completed"
    interrupt.refresh_from_db()
    assert (interrupt.state, interrupt.decided_by) == ("approved", boss)
    assert_stream_is_whole(session)


def test_a_rejected_call_runs_nothing_and_the_model_gets_the_reason(desk: Live) -> None:
    boss = desk.person("boss", "refunds.approve")
    session = desk.start(boss)
    desk.decide(boss, desk.ask(session), "reject", "Ask the carrier first.")
    desk.idle(session)

    call = desk.call(session, "issue_refund")
    assert call.outcome == "rejected"
    assert "Ask the carrier first." in call.words and "boss" in call.words
    assert desk.ledger("refunds") == []
    assert session.events.filter(type="tool.rejected").count() == 1
    assert session.steps.get(type="CallSingleAttemptTool").status == "canceled"


def test_at_its_deadline_a_call_expires_by_nobody_and_does_not_run(live: Live) -> None:
    calls = [{"tool": "shop__issue_refund", "args": REFUND}]
    live.agent([{"calls": calls}, {"text": "Over."}], deadline="2s", pool="standing")
    boss = live.person("boss", "refunds.approve")
    session = live.start(boss)
    interrupt = live.ask(session)
    live.idle(session)

    interrupt.refresh_from_db()
    assert (interrupt.state, interrupt.decided_by, interrupt.decided_by_name) == (
        "expired",
        None,
        "",
    )
    assert live.call(session, "issue_refund").outcome == "expired"
    assert live.ledger("refunds") == []
    assert session.events.filter(type="approval.expired").count() == 1
    assert not session.events.filter(type="approval.decided").exists()
    with pytest.raises(InterruptExpired):
        live.decide(boss, interrupt)


def test_of_two_approvers_at_the_same_instant_one_wins_and_the_other_is_told_who(
    desk: Live,
) -> None:
    people = [desk.person(name, "refunds.approve") for name in ("ann", "bob")]
    session = desk.start(people[0])
    interrupt = desk.ask(session)
    results = at_once(desk, people, interrupt, ["approve", "reject"])
    desk.idle(session)

    won = [name for name, result in results.items() if isinstance(result, Decision)]
    lost = [result for result in results.values() if isinstance(result, DexwebError)]
    assert len(won) == 1
    assert isinstance(lost[0], InterruptAlreadyDecided), lost
    assert lost[0].by == won[0]
    interrupt.refresh_from_db()
    assert interrupt.decided_by_name == won[0]
    assert len(desk.ledger("refunds")) == (1 if interrupt.state == "approved" else 0)
    assert session.events.filter(type="approval.decided").count() == 1


def test_many_approvers_at_once_make_one_decision_and_one_run(desk: Live) -> None:
    people = [desk.person(f"p{number}", "refunds.approve") for number in range(6)]
    session = desk.start(people[0])
    results = at_once(desk, people, desk.ask(session), ["approve"])
    desk.idle(session)

    assert sum(isinstance(result, Decision) for result in results.values()) == 1
    assert len(desk.ledger("refunds")) == 1


def at_once(
    desk: Live, people: list[User], interrupt: Interrupt, verdicts: list[str]
) -> dict[str, object]:
    """What each got who decided in the same instant: a Decision or the error."""
    barrier = threading.Barrier(len(people))
    results: dict[str, object] = {}

    def press(user: User, verdict: str) -> None:
        barrier.wait()
        try:
            results[user.username] = desk.decide(user, interrupt, verdict)
        except Exception as error:
            results[user.username] = error
        finally:
            connections.close_all()

    threads = [
        threading.Thread(target=press, args=(user, verdicts[number % len(verdicts)]))
        for number, user in enumerate(people)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_the_same_request_again_gets_the_first_answer(desk: Live) -> None:
    boss = desk.person("boss", "refunds.approve")
    session = desk.start(boss)
    interrupt = desk.ask(session)
    request_id = str(uuid.uuid4())
    first = desk.decide(boss, interrupt, request_id=request_id)
    desk.idle(session)

    again = desk.decide(boss, interrupt, request_id=request_id)
    assert again.pk == first.pk
    assert len(desk.ledger("refunds")) == 1
    with pytest.raises(KeyReused):
        desk.decide(boss, interrupt, "reject", request_id=request_id)


def test_who_may_not_decide_is_refused_and_told_what_is_missing(desk: Live) -> None:
    boss = desk.person("boss", "refunds.approve")
    interrupt = desk.ask(desk.start(boss))

    with pytest.raises(DecisionNotAllowed) as refusal:
        desk.decide(desk.person("other", "tools.approve"), interrupt)
    assert refusal.value.permission == "refunds.approve"
    with pytest.raises(InterruptNotFound):
        desk.decide(desk.person("blind", "refunds.approve", sees=False), interrupt)
    assert not interrupt.decisions.exists()


def test_a_decision_on_other_arguments_is_stale_and_touches_nothing(desk: Live) -> None:
    boss = desk.person("boss", "refunds.approve")
    session = desk.start(boss)
    interrupt = desk.ask(session)
    interrupt.args_hash = "0" * 64
    with pytest.raises(StaleInterrupt):
        desk.decide(boss, interrupt)
    session.refresh_from_db()
    assert session.waiting == 1


def test_a_rejection_needs_a_reason(desk: Live) -> None:
    boss = desk.person("boss", "refunds.approve")
    interrupt = desk.ask(desk.start(boss))
    with pytest.raises(ReasonRequired):
        desk.decide(boss, interrupt, "reject", reason="  ")


def test_an_approver_who_lost_the_permission_before_dispatch_voids_the_approval(desk: Live) -> None:
    """Approved by the rows, but the person is deactivated by the time the Step looks."""
    boss = desk.person("boss", "refunds.approve")
    second = desk.person("second", "refunds.approve")
    session = desk.start(boss)
    interrupt = desk.ask(session)
    # The check that the decision passes reads the instance; the one at dispatch reads the row.
    User.objects.filter(pk=boss.pk).update(is_active=False)
    desk.decide(boss, interrupt)

    fresh = until(
        lambda: session.interrupts.pending().exclude(pk=interrupt.pk).first(), "a fresh request"
    )
    assert desk.ledger("refunds") == []
    interrupt.refresh_from_db()
    assert interrupt.state == "invalidated"
    desk.decide(second, fresh)
    desk.idle(session)
    assert len(desk.ledger("refunds")) == 1


def test_with_the_engine_away_the_decision_is_kept(desk: Live, settings: object) -> None:
    boss = desk.person("boss", "refunds.approve")
    interrupt = desk.ask(desk.start(boss))
    address = settings.DEXWEB_TEMPORAL_ADDRESS  # type: ignore[attr-defined]
    settings.DEXWEB_TEMPORAL_ADDRESS = "127.0.0.1:9"  # type: ignore[attr-defined]
    settings.DEXWEB_ENGINE_TIMEOUT = 1.0  # type: ignore[attr-defined]
    with pytest.raises(EngineUnavailable) as refusal:
        desk.decide(boss, interrupt)
    settings.DEXWEB_TEMPORAL_ADDRESS = address  # type: ignore[attr-defined]
    assert refusal.value.delivery == "delivery_pending"

    until(lambda: interrupt.decisions.filter(state="delivered").exists(), "the sweeper to deliver")
    desk.idle(interrupt.session)
    assert len(desk.ledger("refunds")) == 1
