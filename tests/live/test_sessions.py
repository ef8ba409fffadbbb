"""Messages, turns and ends of sessions on the real engine."""

import uuid

import pytest
from asgiref.sync import async_to_sync
from django.core.exceptions import PermissionDenied

from approvals_app.models import AuditEntry
from dexweb.engine.client import SessionEngine
from dexweb.engine.errors import BlankMessage, NoTurn, ReasonRequired, SessionClosed, TooLarge
from sessions_app import actions
from sessions_app.flow import state
from sessions_app.models import Session
from sessions_app.reconcile import reconcile_some
from tests.live.conftest import Live, assert_stream_is_whole, until

pytestmark = pytest.mark.usefixtures("standing_worker")

LOOKUP = {"tool": "shop__lookup_order", "args": {"order_id": "A-1042"}}


def new_id() -> str:
    return str(uuid.uuid4())


def test_parallel_calls_are_joined_before_the_next_model_call(live: Live) -> None:
    other = {"tool": "shop__search_policy", "args": {"query": "late"}}
    live.agent([{"calls": [LOOKUP, LOOKUP, other]}, {"text": "Done."}], pool="standing")
    session = live.idle(live.start(live.person("ann")))

    joined = session.steps.get(step_id="ResumeTurn-1")
    assert joined.causes == ["CallTool-1", "CallTool-2", "CallTool-3"]
    assert session.steps.get(step_id="RunModel-2").causes == ["ResumeTurn-1"]
    assert session.steps.get(step_id="RunModel-2").text == "Done."
    assert_stream_is_whole(session)


def test_a_call_that_does_not_fit_its_schema_is_not_run_and_not_offered_for_approval(
    live: Live,
) -> None:
    wrong = {"tool": "shop__issue_refund", "args": {"order_id": "A-1042", "amount": "lots"}}
    live.agent([{"calls": [wrong]}, {"text": "Sorry."}], pool="standing")
    session = live.idle(live.start(live.person("ann")))

    call = live.call(session, "issue_refund")
    assert call.outcome == "failed"
    assert "amount" in call.words and "did not run" in call.words
    assert not session.interrupts.exists()
    assert session.steps.filter(type="RecordToolFailure").count() == 1


def test_an_unknown_tool_fails_in_words(live: Live) -> None:
    live.agent(
        [{"calls": [{"tool": "shop__fly", "args": {}}]}, {"text": "Sorry."}], pool="standing"
    )
    session = live.idle(live.start(live.person("ann")))
    assert "no tool shop__fly" in live.call(session, "fly").words


def test_an_error_that_the_tool_knows_reaches_the_model(live: Live) -> None:
    calls = [{"tool": "shop__lookup_order", "args": {"order_id": "Z-1"}}]
    live.agent([{"calls": calls}, {"text": "Sorry."}], pool="standing")
    session = live.idle(live.start(live.person("ann")))
    call = live.call(session, "lookup_order")
    assert (call.outcome, call.attempts) == ("failed", 1)
    assert "Z-1" in call.words


def test_a_write_that_hangs_past_its_time_is_unknown(live: Live) -> None:
    refund = {"order_id": "A-1042", "amount": 20, "currency": "EUR", "reason": "late"}
    calls = [{"tool": "shop__issue_refund", "args": refund}]
    live.agent(
        [{"calls": calls}, {"text": "Hm."}], delay="issue_refund=30s", timeout="1s", pool="standing"
    )
    boss = live.person("boss", "refunds.approve")
    session = live.start(boss)
    live.decide(boss, live.ask(session))
    live.idle(session)
    assert live.call(session, "issue_refund").outcome == "outcome_unknown"
    assert len(live.ledger("refunds")) == 1


def test_a_message_sent_while_a_turn_runs_is_queued_and_starts_the_next_turn(live: Live) -> None:
    live.agent(
        [{"calls": [LOOKUP]}, {"text": "One."}, {"text": "Two."}],
        delay="lookup_order=1s",
        pool="standing",
    )
    ann = live.person("ann")
    session = live.start(ann)
    live.begun(session, "lookup_order", "lookups")
    answer = actions.send_message(ann, session.pk, "And then?", new_id())
    assert answer.state == "queued"
    assert session.messages.get(message_id=answer.id).state == "queued"

    live.idle(session, turn=2)
    assert session.messages.get(message_id=answer.id).turn == 2
    assert session.steps.filter(type="RunModel").order_by("position").last().text == "Two."  # type: ignore[union-attr]


def test_the_same_message_request_is_one_message(live: Live) -> None:
    live.agent([{"text": "Yes.", "repeat": True}], pool="standing")
    ann = live.person("ann")
    session = live.idle(live.start(ann))
    request_id = new_id()
    for _ in range(3):
        actions.send_message(ann, session.pk, "Again", request_id)
    live.idle(session, turn=2)
    assert session.messages.count() == 2


def test_a_blank_or_too_long_message_is_refused(live: Live) -> None:
    live.agent([{"text": "Yes.", "repeat": True}], pool="standing")
    ann = live.person("ann")
    session = live.idle(live.start(ann))
    with pytest.raises(BlankMessage):
        actions.send_message(ann, session.pk, " \n", new_id())
    with pytest.raises(TooLarge) as refusal:
        actions.send_message(ann, session.pk, "x" * 70_000, new_id())
    assert refusal.value.limit == 65_536
    assert session.messages.count() == 1


def test_the_same_start_request_is_one_session(live: Live) -> None:
    live.agent([{"text": "Yes."}], pool="standing")
    ann = live.person("ann")
    request_id = new_id()
    first = actions.start_session(ann, agent="desk", message="Hello", request_id=request_id)
    again = actions.start_session(ann, agent="desk", message="Hello", request_id=request_id)
    assert first.pk == again.pk
    live.idle(first)
    assert first.messages.count() == 1


def test_a_viewer_may_not_operate(live: Live) -> None:
    live.agent([{"text": "Yes."}], pool="standing")
    session = live.idle(live.start(live.person("ann")))
    viewer = live.person("viewer", operates=False)
    for act in (
        lambda: live.start(viewer),
        lambda: actions.send_message(viewer, session.pk, "Hi", new_id()),
        lambda: actions.cancel_turn(viewer, session.pk, "", new_id()),
        lambda: actions.stop(viewer, session.pk, "cancel", "", new_id()),
    ):
        with pytest.raises(PermissionDenied):
            act()


def test_a_model_error_worth_a_retry_is_retried_and_then_ends_the_turn_in_words(live: Live) -> None:
    live.agent([{"error": "overloaded"}, {"text": "Back."}], pool="standing")
    ann = live.person("ann")
    session = live.idle(live.start(ann))
    turn = session.turns.get(number=1)
    assert turn.state == "failed"
    assert "overloaded" in turn.detail
    assert session.steps.get(step_id="RunModel-1").attempt == 3

    actions.send_message(ann, session.pk, "And now?", new_id())
    live.idle(session, turn=2)
    assert session.turns.get(number=2).state == "completed"


def test_cancelling_a_turn_ends_a_wait_for_a_person_and_the_session_goes_on(live: Live) -> None:
    live.agent(pool="standing")
    ann = live.person("ann")
    session = live.start(ann)
    interrupt = live.ask(session)
    actions.cancel_turn(ann, session.pk, "Wrong order", new_id())

    session.refresh_from_db()
    assert (session.phase, session.waiting, session.status) == ("idle", 0, "running")
    interrupt.refresh_from_db()
    assert interrupt.state == "canceled"
    assert live.call(session, "issue_refund").outcome == "canceled"
    assert session.turns.get(number=1).state == "canceled"
    assert live.ledger("refunds") == []
    with pytest.raises(NoTurn):
        actions.cancel_turn(ann, session.pk, "", new_id())


def test_cancelling_many_parallel_calls_is_the_same_again_when_it_is_replayed(live: Live) -> None:
    """Every history is replayed at the end of its test; here many things are canceled at once."""
    live.agent(
        [{"calls": [LOOKUP] * 12}, {"text": "Done."}], delay="lookup_order=60s", pool="standing"
    )
    ann = live.person("ann")
    session = live.start(ann)
    until(lambda: len(live.ledger("lookups")) == 12, "all of them to run")
    actions.cancel_turn(ann, session.pk, "Too slow", new_id())
    live.idle(session)
    assert {call.outcome for call in session.calls.all()} == {"canceled"}


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("complete", "completed"),
        ("cancel", "canceled"),
        ("fail", "failed"),
        ("terminate", "terminated"),
    ],
)
def test_a_session_ends_as_it_was_told_to(live: Live, kind: str, status: str) -> None:
    live.agent([{"text": "Yes.", "repeat": True}], pool="standing")
    ann = live.person("ann")
    session = live.idle(live.start(ann))
    actions.stop(ann, session.pk, kind, "Enough", new_id())

    session.refresh_from_db()
    assert (session.status, session.close_reason) == (status, "Enough")
    assert not session.steps.filter(status="waiting").exists()
    with pytest.raises(SessionClosed):
        actions.send_message(ann, session.pk, "Still there?", new_id())
    with pytest.raises(SessionClosed):
        actions.stop(ann, session.pk, "cancel", "", new_id())


def test_a_session_that_waits_for_a_person_can_be_stopped(live: Live) -> None:
    live.agent(pool="standing")
    ann = live.person("ann")
    session = live.start(ann)
    interrupt = live.ask(session)
    actions.stop(ann, session.pk, "cancel", "", new_id())
    session.refresh_from_db()
    interrupt.refresh_from_db()
    assert (session.status, interrupt.state, session.waiting) == ("canceled", "canceled", 0)


@pytest.mark.parametrize("kind", ["cancel", "complete", "terminate"])
def test_the_request_that_ended_a_session_gets_its_answer_again_and_no_other_one(
    live: Live, kind: str
) -> None:
    live.agent([{"text": "Yes."}], pool="standing")
    ann, request_id = live.person("ann"), new_id()
    session = live.idle(live.start(ann))
    # It reaches the engine, and its web server dies before it has written down that it did.
    if kind == "terminate":
        async_to_sync(SessionEngine().terminate)(session.pk, "Enough")
    else:
        rpc = state.Stop(request_id, kind, actions.actor_of(ann), "Enough")  # type: ignore[arg-type]
        async_to_sync(SessionEngine().stop)(session.pk, rpc)
    for _ in range(2):
        answer = actions.stop(ann, session.pk, kind, "Enough", request_id)
        session.refresh_from_db()
        assert answer.state == session.status != "running"
    assert AuditEntry.objects.filter(action="session.stopped").count() == 1
    with pytest.raises(SessionClosed):
        actions.stop(ann, session.pk, kind, "Enough", new_id())


def test_a_forced_end_needs_a_reason(live: Live) -> None:
    live.agent([{"text": "Yes."}], pool="standing")
    ann = live.person("ann")
    session = live.idle(live.start(ann))
    for kind in ("terminate", "fail"):
        with pytest.raises(ReasonRequired):
            actions.stop(ann, session.pk, kind, " ", new_id())


def test_live_pieces_of_a_model_are_streamed_and_then_trimmed(live: Live) -> None:
    # Slower than a tenth of a second, or its end alone would be told.
    slowly = {"script": [{"text": "One two three."}], "word_delay": 0.1}
    live.agent(slowly["script"], pool="standing", more={"settings": slowly})
    session = live.idle(live.start(live.person("ann")))
    assert not session.events.filter(type="model.delta").exists()
    completed = session.events.get(type="model.completed")
    assert completed.payload["text"] == "One two three."
    until(lambda: session.last_seq > session.events.count(), "a trimmed range")


def test_a_session_that_ended_unseen_in_the_engine_is_closed_when_somebody_speaks_to_it(
    live: Live,
) -> None:
    live.agent(pool="standing")
    ann = live.person("ann")
    session = live.start(ann)
    interrupt = live.ask(session)
    async_to_sync(SessionEngine().terminate)(session.pk, "from outside")

    with pytest.raises(SessionClosed):
        actions.send_message(ann, session.pk, "Still there?", new_id())
    session.refresh_from_db()
    interrupt.refresh_from_db()
    assert (session.status, interrupt.state) == ("terminated", "canceled")


def test_the_sweep_closes_sessions_that_ended_unseen_and_leaves_the_others(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sessions_app.reconcile.BATCH", 1)
    live.agent([{"text": "Yes.", "repeat": True}], pool="standing")
    ann = live.person("ann")
    gone, here = live.idle(live.start(ann)), live.idle(live.start(ann))
    async_to_sync(SessionEngine().terminate)(gone.pk, "from outside")
    first = reconcile_some("")
    second = reconcile_some(first)
    assert [first, second] == sorted([gone.pk, here.pk])
    assert reconcile_some(second) == ""
    gone.refresh_from_db()
    here.refresh_from_db()
    assert (gone.status, here.status) == ("terminated", "running")


def test_a_session_that_the_engine_has_lost_can_be_stopped(live: Live) -> None:
    live.agent([{"text": "Yes."}], pool="standing")
    ann = live.person("ann")
    session = live.idle(live.start(ann))
    lost = Session.objects.create(
        id="lost-1",
        agent=session.agent,
        title="Lost",
        created_at=session.created_at,
        updated_at=session.updated_at,
    )
    assert actions.stop(ann, lost.pk, "cancel", "", new_id()).state == "terminated"
    lost.refresh_from_db()
    assert lost.status == "terminated"
    assert "does not know" in lost.close_reason
    lost.delete()
