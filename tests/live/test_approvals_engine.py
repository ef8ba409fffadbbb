"""The engine drops out after it was told: one decision in the audit log, one run."""

import os
import signal
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connections

from approvals_app import audit
from approvals_app.models import AuditEntry, Decision, Interrupt
from dexweb.engine import embedded
from dexweb.engine.errors import DexwebError, InterruptAlreadyDecided
from sessions_app.flow.rules import DID_NOT_RUN
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


def test_an_engine_that_is_killed_right_after_it_took_a_decision_has_it_when_it_is_back(
    live: Live, engine: embedded.EmbeddedEngine
) -> None:
    live.worker()
    live.agent(SCRIPT)
    ann, bob = (live.person(name, "refunds.approve") for name in ("ann", "bob"))
    taken, sent = (live.ask(live.start(ann)) for _ in range(2))
    assert live.decide(ann, taken).state == "delivered"
    thread, answers = pressed(live, ann, sent)
    until(lambda: sent.decisions.exists(), "the decision to be written")
    os.kill(engine.process.pid, signal.SIGKILL)
    engine.process.wait()
    var, port = engine.address_file.parent, int(engine.address.rpartition(":")[2])
    engine.process = embedded.start(var, port).process
    thread.join()

    [answer] = answers
    assert isinstance(answer, Decision) or getattr(answer, "delivery", "") == "delivery_pending"
    begun = 0
    for interrupt in (taken, sent):
        told_once(live, interrupt)
        with pytest.raises(InterruptAlreadyDecided) as late:
            live.decide(bob, interrupt, "reject")
        assert (late.value.state, late.value.by) == ("approved", "ann")
        begun += interrupt.session.calls.get().started_at is not None
    assert len(live.ledger("refunds")) == begun
    # Whoever delivered it, the request itself or a worker later.
    told = AuditEntry.objects.get(action="decision.approve", subject=f"interrupt:{sent.pk}")
    assert told.via == "api:token"


def pressed(
    live: Live, person: User, interrupt: Interrupt
) -> tuple[threading.Thread, list[object]]:
    """Somebody decides, in a thread of their own; and where what they are told will be."""
    answers: list[object] = []

    def press() -> None:
        try:
            with audit.via("api:token"):
                answers.append(live.decide(person, interrupt, request_id=str(uuid.uuid4())))
        except DexwebError as error:
            answers.append(error)
        finally:
            connections.close_all()

    thread = threading.Thread(target=press)
    thread.start()
    return thread, answers


def told_once(live: Live, interrupt: Interrupt) -> None:
    until(lambda: interrupt.decisions.filter(state="delivered").exists(), "the delivery")
    live.idle(interrupt.session)
    entries = AuditEntry.objects.filter(
        action="decision.approve", subject=f"interrupt:{interrupt.pk}"
    )
    assert [entry.actor_name for entry in entries] == ["ann"]
    assert interrupt.session.events.filter(type="approval.decided").count() == 1
    call = interrupt.session.calls.get()
    # What the engine was just handing to a worker when it died never ran, and its model is told so.
    assert call.started_at or DID_NOT_RUN in call.words
