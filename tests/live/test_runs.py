"""A session outlives its runs: who reads it sees no break."""

import uuid
from dataclasses import replace

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from dexweb.engine.client import SessionEngine
from dexweb.engine.errors import RunNearlyFull
from sessions_app import actions
from sessions_app.flow import state, terms
from sessions_app.models import Session
from tests.live.conftest import Live, assert_stream_is_whole, engine_holds, until

pytestmark = pytest.mark.usefixtures("standing_worker")

REFUND = {"order_id": "A-1042", "amount": 20, "currency": "EUR", "reason": "late"}


def start_short(user: User, agent: str = "desk", **limits: int) -> Session:
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
        limits=replace(state.Limits(), heartbeat=2.0, **(limits or {"continue_updates": 1})),
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


def test_a_turn_that_has_taken_very_many_requests_still_takes_decisions(live: Live) -> None:
    calls = [{"tool": "shop__issue_refund", "args": REFUND}]
    live.agent([{"calls": calls}, {"text": "Done."}], pool="standing")
    boss = live.person("boss", "refunds.approve")
    session = start_short(boss, last_updates=2)
    interrupt = live.ask(session)

    def hold() -> None:
        rpc = state.HoldInterrupt(str(uuid.uuid4()), interrupt.pk, actions.actor_of(boss), 60)
        async_to_sync(SessionEngine().hold_interrupt)(session.pk, rpc)

    hold()
    hold()
    with pytest.raises(RunNearlyFull, match="takes only decisions"):
        hold()
    with pytest.raises(RunNearlyFull):
        actions.send_message(boss, session.pk, "And?", str(uuid.uuid4()))
    live.decide(boss, interrupt)
    live.idle(session)
    assert live.call(session, "issue_refund").outcome == "completed"
    # Once the turn has ended there is room again.
    actions.send_message(boss, session.pk, "And?", str(uuid.uuid4()))
    live.idle(session, turn=2)


def test_a_turn_ends_in_words_before_its_run_is_longer_than_the_engine_keeps(live: Live) -> None:
    calls = [{"tool": "shop__search_policy", "args": {"query": "refund"}}]
    live.agent([{"calls": calls}] * 9, pool="standing")
    session = live.idle(start_short(live.person("ann"), last_events=40))
    turn = session.turns.get()
    assert turn.state == "failed"
    assert "Send another message" in turn.detail
    assert session.history_events > 0


def test_the_limits_of_an_agent_hold_for_its_sessions_and_results_stay_out_of_the_engine(
    live: Live,
) -> None:
    call = {"tool": "shop__search_policy", "args": {"query": "refund"}}
    limits = {"model_calls_per_turn": 2, "parallel_calls": 1}
    live.agent([{"calls": [call, call]}] * 3, pool="standing", more={"limits": limits})
    session = live.idle(live.start(live.person("ann")))
    assert session.turns.get().detail == "The turn reached its limit of 2 model calls."
    outcomes = session.calls.order_by("model_step", "position").values_list("outcome", flat=True)
    assert list(outcomes) == ["completed", "failed"] * 2
    assert session.turn_model_calls == 2
    result = session.calls.filter(outcome="completed").first().result
    assert "window_days" in result
    assert not engine_holds(session, "window_days")


def test_a_session_that_is_to_end_when_its_queue_is_done_does_so_over_several_runs(
    live: Live,
) -> None:
    live.agent([{"text": "Yes.", "repeat": True}], pool="standing")
    ann = live.person("ann")
    session = start_short(ann)
    for number in range(4):
        actions.send_message(ann, session.pk, f"Message {number}", str(uuid.uuid4()))
    actions.stop(ann, session.pk, "complete", "", str(uuid.uuid4()))
    until(lambda: (session.refresh_from_db(), session.status == "completed")[1], "its end")
    assert session.turns.filter(state="completed").count() == 5
    assert_stream_is_whole(session)
