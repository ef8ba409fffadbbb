"""The engine drops out after it was told: one decision in the audit log, one run."""

import os
import signal
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connections

from approvals_app.models import AuditEntry, Decision, Interrupt
from dexweb.engine import embedded
from dexweb.engine.errors import DexwebError
from sessions_app.models import Session
from tests.live.conftest import Live, until

REFUND = {"order_id": "A-1042", "amount": 20, "currency": "EUR", "reason": "late"}
SCRIPT = [{"calls": [{"tool": "shop__issue_refund", "args": REFUND}]}, {"text": "Done."}]


@pytest.fixture
def engine(tmp_path: Path, live: Live) -> Iterator[embedded.EmbeddedEngine]:
    """An engine of this test's own, since it is going to be hurt."""
    var = tmp_path / "engine"
    var.mkdir()
    shared = settings.DEXWEB_TEMPORAL_ADDRESS
    own = embedded.start(var)
    settings.DEXWEB_TEMPORAL_ADDRESS = own.address
    yield own
    live.end()
    # The shared engine, which looks at what is left, knows none of them.
    Session.objects.all().delete()
    settings.DEXWEB_TEMPORAL_ADDRESS = shared
    own.stop()


def test_an_engine_that_falls_silent_while_it_is_told_gets_the_decision_once(
    live: Live, engine: embedded.EmbeddedEngine
) -> None:
    live.worker()
    live.agent(SCRIPT)
    ann = live.person("ann", "refunds.approve")
    interrupt = live.ask(live.start(ann))
    pid = engine.process.pid
    answers: list[object] = []

    def press() -> None:
        try:
            answers.append(live.decide(ann, interrupt, request_id=str(uuid.uuid4())))
        except DexwebError as error:
            answers.append(error)
        finally:
            connections.close_all()

    thread = threading.Thread(target=press)
    thread.start()
    until(lambda: Decision.objects.exists(), "the decision to be written")
    os.kill(pid, signal.SIGSTOP)
    try:
        thread.join(25)
    finally:
        os.kill(pid, signal.SIGCONT)
    thread.join()
    [answer] = answers
    assert isinstance(answer, Decision) or getattr(answer, "delivery", "") == "delivery_pending"
    told_once(live, interrupt)


def told_once(live: Live, interrupt: Interrupt) -> None:
    until(lambda: interrupt.decisions.filter(state="delivered").exists(), "the delivery")
    live.idle(interrupt.session)
    entries = AuditEntry.objects.filter(action="decision.approve")
    assert [entry.actor_name for entry in entries] == ["ann"]
    assert interrupt.session.events.filter(type="approval.decided").count() == 1
    assert len(live.ledger("refunds")) == 1
