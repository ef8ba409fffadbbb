"""Any process may be killed at any moment: nothing decided is lost.

What becomes of a call that was running: test_outcomes.
"""

import uuid
from contextlib import suppress

import pytest

from dexweb.engine.errors import NoWorker
from sessions_app import actions
from tests.live.conftest import Live, until

REFUND = {"order_id": "A-1042", "amount": 20, "currency": "EUR", "reason": "late"}


def refund_script() -> list[dict[str, object]]:
    return [
        {"text": "I'll refund it.", "calls": [{"tool": "shop__issue_refund", "args": REFUND}]},
        {"text": "That is all I can do."},
    ]


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


def test_a_decision_made_while_no_worker_runs_is_kept_and_delivered_later(
    live: Live, settings: object
) -> None:
    worker = live.worker()
    boss = live.person("boss", "refunds.approve")
    live.agent(refund_script())
    session = live.start(boss)
    interrupt = live.ask(session)
    worker.kill()

    settings.DEXWEB_ENGINE_TIMEOUT = 1.0  # type: ignore[attr-defined]
    with pytest.raises(NoWorker) as refusal:
        live.decide(boss, interrupt)
    assert refusal.value.delivery == "delivery_pending"

    live.worker()
    live.idle(session)
    decision = interrupt.decisions.get()
    until(lambda: (decision.refresh_from_db(), decision.state == "delivered")[1])
    assert len(live.ledger("refunds")) == 1
    assert session.events.filter(type="approval.decided").count() == 1


def test_what_is_said_while_no_worker_runs_is_called_uncertain_and_is_said_once_if_repeated(
    live: Live, settings: object
) -> None:
    worker = live.worker()
    ann = live.person("ann")
    live.agent([{"text": "Yes.", "repeat": True}])
    session = live.idle(live.start(ann))
    worker.kill()

    settings.DEXWEB_ENGINE_TIMEOUT = 1.0  # type: ignore[attr-defined]
    request_id = str(uuid.uuid4())
    with pytest.raises(NoWorker, match="not certain whether this was done"):
        actions.send_message(ann, session.pk, "Still there?", request_id)

    live.worker()
    # What was sent has been kept by the engine for whoever comes, and is not said again.
    live.idle(session, turn=2)
    actions.send_message(ann, session.pk, "Still there?", request_id)
    assert session.messages.filter(text="Still there?").count() == 1
