"""Pools and slots, and how a worker stops."""

import signal
from collections.abc import Iterator
from typing import Any

import pytest

from sessions_app.models import Session, WorkerPresence
from tests.live.conftest import Live, WorkerProcess, until

REFUND = {"order_id": "A-1042", "amount": 20, "currency": "EUR", "reason": "late"}
LOOK_UP = {"tool": "shop__lookup_order", "args": {"order_id": "A-1042"}}


@pytest.mark.usefixtures("standing_worker")
def test_a_worker_says_that_it_is_there_with_its_slots(live: Live) -> None:
    row = until(WorkerPresence.objects.filter(pool="standing").first, "the worker's row")
    assert row.fresh
    assert (row.model_slots, row.tool_slots, row.stopping) == (50, 50, False)


@pytest.fixture(scope="module")
def narrow_worker(django_db_setup: None, temporal_engine: Any) -> Iterator[None]:
    """One model call and one tool call at once."""
    worker = WorkerProcess("narrow", "--slots", "1", "--model-slots", "1")
    yield
    worker.kill()


def hang_a_model_call(live: Live, user: Any) -> Session:
    """All slots for model calls of the narrow worker are taken from here on."""
    live.agent([{"text": "At last.", "delay": "5m"}], name="slow", pool="narrow")
    session = live.start(user, "slow")
    until(lambda: session.steps.filter(status="active").exists(), live.state(session))
    return session


@pytest.mark.usefixtures("narrow_worker")
def test_a_tool_runs_while_model_calls_take_all_of_their_slots(live: Live) -> None:
    boss = live.person("boss", "refunds.approve")
    live.agent(
        [{"calls": [{"tool": "shop__issue_refund", "args": REFUND}]}, {"text": "Done."}],
        pool="narrow",
    )
    session = live.start(boss)
    interrupt = live.ask(session)
    hang_a_model_call(live, boss)

    live.decide(boss, interrupt)
    until(lambda: live.call(session, "issue_refund").outcome == "completed", live.state(session))


@pytest.mark.usefixtures("narrow_worker")
def test_a_model_call_that_no_worker_takes_says_so_and_goes_on_waiting(live: Live) -> None:
    boss = live.person("boss")
    slow = hang_a_model_call(live, boss)
    live.agent(
        [{"text": "Hello."}], pool="narrow", more={"model_calls": {"schedule_to_start": "1s"}}
    )
    session = live.start(boss)
    waits = session.steps.filter(status="scheduled", detail__contains="had a free slot")
    until(waits.exists, live.state(session))

    live.stop(boss, slow)
    live.idle(session)
    assert session.steps.get(type="RunModel").text == "Hello."


def looking_up(live: Live, delay: str, *options: str) -> tuple[WorkerProcess, Session]:
    """A worker of its own in the middle of a look-up that may be tried once."""
    worker = live.worker("leaving", *options)
    terms = {"lookup_order": {"attempts": 1}}
    script = [{"calls": [LOOK_UP]}, {"text": "Done."}]
    live.agent(script, delay=f"lookup_order={delay}", pool="leaving", tool_terms=terms)
    session = live.start(live.person("boss"))
    live.begun(session, "lookup_order", "lookups")
    return worker, session


def test_a_worker_that_is_stopped_lets_a_running_tool_finish(live: Live) -> None:
    worker, session = looking_up(live, "2s", "--grace", "20")
    assert worker.stop() == 0
    assert live.call(session, "lookup_order").outcome == "completed"
    assert b"Stopping: running Steps have" in worker.log.read_bytes()
    assert b"temporalio" not in worker.log.read_bytes()


def test_a_read_that_is_handed_back_uses_up_no_attempt(live: Live) -> None:
    worker, session = looking_up(live, "3s", "--grace", "0")
    assert worker.stop() == 0
    live.worker("leaving")
    live.idle(session)
    assert live.call(session, "lookup_order").outcome == "completed"
    assert len(live.ledger("lookups")) == 2


def test_a_second_signal_stops_a_worker_at_once(live: Live) -> None:
    worker, _ = looking_up(live, "5m", "--grace", "300")
    worker.process.send_signal(signal.SIGTERM)
    until(lambda: b"Ask again to stop at once" in worker.log.read_bytes())
    worker.process.send_signal(signal.SIGTERM)
    assert worker.process.wait(10) == -signal.SIGTERM
