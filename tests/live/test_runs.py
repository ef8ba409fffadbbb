"""A session outlives its runs: who reads it sees no break."""

import uuid
from dataclasses import replace

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from dexweb.engine.client import SessionEngine
from sessions_app import actions
from sessions_app.flow import state, terms
from sessions_app.models import Session
from tests.live.conftest import Live, assert_stream_is_whole, until

pytestmark = pytest.mark.usefixtures("standing_worker")

REFUND = {"order_id": "A-1042", "amount": 20, "currency": "EUR", "reason": "late"}


def start_short(user: User, agent: str = "desk") -> Session:
    """A session whose run goes over to a new one after each turn that an RPC came in."""
    session_id = f"{agent}-{uuid.uuid4().hex[:12]}"
    actor = actions.actor_of(user)
    given = state.SessionInput(
        session_id=session_id,
        agent=agent,
        title="Short runs",
        pool="standing",
        started_by=actor,
        first_message=terms.UserMessage(str(uuid.uuid4()), "Hello", actor),
        limits=replace(state.Limits(), continue_updates=1, heartbeat=2.0),
    )
    async_to_sync(SessionEngine().start_session)(given)
    return until(lambda: Session.objects.filter(pk=session_id).first(), "the session's row")


def test_a_run_that_continues_as_new_is_one_session_without_a_break(live: Live) -> None:
    script = [{"text": "One."}, {"text": "Two."}, {"text": "Three."}]
    live.agent(script, pool="standing")
    ann = live.person("ann")
    session = live.idle(start_short(ann))
    first_run = session.run_id
    request_id = str(uuid.uuid4())
    said = actions.send_message(ann, session.pk, "And then?", request_id)
    live.idle(session, turn=2)
    until(lambda: session.events.filter(type="session.continued").exists(), "a new run")

    # A request that the first run answered gets the same answer of the second.
    assert actions.send_message(ann, session.pk, "And then?", request_id) == said
    actions.send_message(ann, session.pk, "Go on", str(uuid.uuid4()))
    live.idle(session, turn=3)

    assert session.messages.count() == 3
    texts = (
        session.steps.filter(type="RunModel").order_by("position").values_list("text", flat=True)
    )
    assert list(texts) == ["One.", "Two.", "Three."]
    models = session.steps.filter(type="RunModel").order_by("position")
    assert [step.step_id for step in models] == ["RunModel-1", "RunModel-2", "RunModel-3"]
    positions = list(session.steps.order_by("position").values_list("position", flat=True))
    assert positions == list(range(1, len(positions) + 1))
    # What a step hangs on may lie in an earlier run; it is named all the same.
    known = set(session.steps.values_list("step_id", flat=True))
    assert all(cause in known for step in session.steps.all() for cause in step.causes)
    assert session.run_id != first_run
    assert_stream_is_whole(session)


def test_the_runs_of_a_session_are_told_and_the_list_has_one_row(live: Live) -> None:
    live.agent([{"text": "Yes.", "repeat": True}], pool="standing")
    ann = live.person("ann")
    session = live.idle(start_short(ann))
    actions.send_message(ann, session.pk, "Again", str(uuid.uuid4()))
    live.idle(session, turn=2)
    continued = until(lambda: session.events.filter(type="session.continued").first(), "a new run")
    session.refresh_from_db()
    assert continued.payload["run_id"] == session.run_id
    assert continued.payload["previous_run"] != session.run_id

    client = APIClient()
    client.force_authenticate(ann)
    shown = client.get(f"/api/v1/sessions/{session.pk}/").json()
    assert [run["current"] for run in shown["runs"]] == [False, True]
    assert len(client.get("/api/v1/sessions/").json()["results"]) == 1


def test_an_approval_is_decided_in_a_later_run(live: Live) -> None:
    calls = [{"tool": "shop__issue_refund", "args": REFUND}]
    live.agent(
        [{"text": "Hello."}, {"text": "Yes."}, {"calls": calls}, {"text": "Done."}], pool="standing"
    )
    boss = live.person("boss", "refunds.approve")
    session = live.idle(start_short(boss))
    actions.send_message(boss, session.pk, "Still there?", str(uuid.uuid4()))
    live.idle(session, turn=2)
    until(lambda: session.events.filter(type="session.continued").exists(), "a new run")
    actions.send_message(boss, session.pk, "Refund it", str(uuid.uuid4()))
    live.decide(boss, live.ask(session))
    live.idle(session, turn=3)
    assert live.call(session, "issue_refund").outcome == "completed"
    assert len(live.ledger("refunds")) == 1


def test_a_write_that_runs_when_its_session_is_terminated_is_unknown_for_good(live: Live) -> None:
    calls = [{"tool": "shop__issue_refund", "args": REFUND}]
    live.agent([{"calls": calls}, {"text": "Hm."}], delay="issue_refund=3s", pool="standing")
    boss = live.person("boss", "refunds.approve")
    session = live.start(boss)
    live.decide(boss, live.ask(session))
    live.begun(session, "issue_refund", "refunds")
    actions.stop(boss, session.pk, "terminate", "It does not react.", str(uuid.uuid4()))

    session.refresh_from_db()
    last_seq = session.last_seq
    call = live.call(session, "issue_refund")
    assert (session.status, call.outcome) == ("terminated", "outcome_unknown")
    assert session.events.get(seq=last_seq).type == "session.closed"
    # The worker may come back with a result after that: nothing is revived by it.
    with pytest.raises(AssertionError):
        until(lambda: (session.refresh_from_db(), session.last_seq > last_seq)[1], patience=4)
    assert not session.steps.filter(
        status__in=["active", "completed"], call_id=call.call_id, type="CallSingleAttemptTool"
    ).exists()
