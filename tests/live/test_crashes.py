"""Any process may be killed at any moment: nothing decided is lost, no write is silently repeated."""

from contextlib import suppress

import pytest

from dexweb.engine.errors import NoWorker
from tests.live.conftest import Live, assert_stream_is_whole, until

REFUND = {"order_id": "A-1042", "amount": 20, "currency": "EUR", "reason": "late"}


def refund_script() -> list[dict[str, object]]:
    return [
        {"text": "I'll refund it.", "calls": [{"tool": "shop__issue_refund", "args": REFUND}]},
        {"text": "That is all I can do."},
    ]


def test_a_write_whose_worker_is_killed_is_unknown_and_is_not_run_again(live: Live) -> None:
    worker = live.worker()
    boss = live.person("boss", "refunds.approve")
    live.agent(refund_script(), delay="issue_refund=20s")
    session = live.start(boss)
    live.decide(boss, live.ask(session))
    live.begun(session, "issue_refund", "refunds")
    worker.kill()

    live.worker()
    live.idle(session)

    call = live.call(session, "issue_refund")
    assert call.outcome == "outcome_unknown"
    assert "not known" in call.words
    assert len(live.ledger("refunds")) == 1
    assert session.unknown_outcomes == 1
    assert session.steps.filter(type="RecordToolOutcomeUnknown").count() == 1
    assert session.events.filter(type="tool.outcome_unknown").count() == 1
    assert_stream_is_whole(session)


def test_a_read_whose_worker_is_killed_is_run_again_once(live: Live) -> None:
    worker = live.worker()
    boss = live.person("boss")
    calls = [{"tool": "shop__lookup_order", "args": {"order_id": "A-1042"}}]
    live.agent([{"calls": calls}, {"text": "Done."}], delay="lookup_order=6s")
    session = live.start(boss)
    live.begun(session, "lookup_order", "lookups")
    worker.kill()

    live.worker()
    live.idle(session)

    call = live.call(session, "lookup_order")
    assert call.outcome == "completed"
    assert call.attempts == 2
    lookups = live.ledger("lookups")
    assert len(lookups) == 2
    assert {row[1] for row in lookups} == {call.call_id}
    assert session.events.filter(type="tool.completed").count() == 1
    assert_stream_is_whole(session)


def test_a_decision_still_works_after_the_worker_was_killed_while_waiting(live: Live) -> None:
    worker = live.worker()
    boss = live.person("boss", "refunds.approve")
    live.agent(refund_script())
    session = live.start(boss)
    interrupt = live.ask(session)
    worker.kill()

    live.worker()
    # The engine may still offer the session to the dead worker for a while: then it is kept.
    with suppress(NoWorker):
        live.decide(boss, interrupt)
    live.idle(session)

    assert live.call(session, "issue_refund").outcome == "completed"
    assert len(live.ledger("refunds")) == 1


def test_a_decision_made_while_no_worker_runs_is_kept_and_delivered_later(live: Live) -> None:
    worker = live.worker()
    boss = live.person("boss", "refunds.approve")
    live.agent(refund_script())
    session = live.start(boss)
    interrupt = live.ask(session)
    worker.kill()

    with pytest.raises(NoWorker) as refusal:
        live.decide(boss, interrupt)
    assert refusal.value.delivery == "delivery_pending"

    live.worker()
    live.idle(session)
    decision = interrupt.decisions.get()
    until(lambda: (decision.refresh_from_db(), decision.state == "delivered")[1])
    assert len(live.ledger("refunds")) == 1
    assert session.events.filter(type="approval.decided").count() == 1
