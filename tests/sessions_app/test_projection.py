"""Facts become rows and events: once each, together, and nothing after the end."""

from dataclasses import replace

import pytest
from django.utils import timezone

from sessions_app import projection
from sessions_app.flow import fact, terms
from sessions_app.models import Session
from sessions_app.steps import reports
from tests.sessions_app.api import build

pytestmark = pytest.mark.django_db

ANN = terms.Actor(0, "ann")


def facts(*bodies, first=1):
    return [fact.Fact(first + n, build.NOON.isoformat(), body) for n, body in enumerate(bodies)]


def started():
    return fact.SessionStarted("session_started", "refund-desk", "A refund", ANN, {}, "run-1")


def queued(number=1):
    message = terms.UserMessage(f"m-{number}", "Hello", ANN)
    return fact.MessageQueued("message_queued", message)


def step(status="scheduled", **fields):
    body = fact.StepChanged("step_changed", "RunModel-1", "RunModel", 1, 1, status)
    return replace(body, **fields)


@pytest.fixture
def session():
    build.agent()
    projection.record("s-1", facts(started(), queued()))
    return Session.objects.get(pk="s-1")


def types(session):
    return list(session.events.order_by("seq").values_list("type", flat=True))


def test_facts_that_were_recorded_change_nothing_a_second_time(session):
    newest = projection.record("s-1", facts(started(), queued(), queued(2)))
    assert newest == 3
    assert session.messages.count() == 2
    assert types(session) == ["session.started", "message.queued", "message.queued"]
    assert list(session.events.values_list("seq", flat=True)) == [1, 2, 3]


def test_a_session_is_not_idle_while_a_message_waits_for_its_turn(session):
    assert session.phase == "thinking"
    idle = fact.PhaseChanged("phase_changed", "idle")
    projection.record("s-1", facts(idle, queued(2), first=3))
    session.refresh_from_db()
    assert session.phase == "thinking"


def test_a_session_is_idle_again_once_the_only_message_that_waited_was_withdrawn(session):
    withdrawn = fact.MessageDeleted("message_deleted", "m-1", ANN)
    projection.record("s-1", facts(withdrawn, first=3))
    session.refresh_from_db()
    assert session.phase == "idle"


def test_a_message_in_the_middle_of_a_turn_changes_no_phase(session):
    acting = fact.PhaseChanged("phase_changed", "waiting_approval")
    projection.record("s-1", facts(acting, queued(2), first=3))
    session.refresh_from_db()
    assert session.phase == "waiting_approval"


def test_a_fact_whose_forerunner_is_missing_waits_for_it(session):
    assert projection.record("s-1", facts(queued(4), first=4)) == 2
    assert session.messages.count() == 1


def test_a_fact_that_cannot_be_recorded_leaves_neither_rows_nor_events(session):
    unknown = fact.TurnStarted("turn_started", 1, "m-none")
    with pytest.raises(Exception, match="does not exist"):
        projection.record("s-1", facts(queued(2), unknown, first=3))
    session.refresh_from_db()
    assert (session.last_seq, session.messages.count(), session.turns.count()) == (2, 1, 0)


def test_a_step_was_scheduled_when_it_was_first_scheduled(session):
    retrying = {"attempt": 2, "outcome": "retrying", "next_attempt_at": timezone.now().isoformat()}
    projection.record("s-1", facts(step(), first=3))
    later = [fact.Fact(4, timezone.now().isoformat(), step(**retrying))]
    projection.record("s-1", later)
    row = session.steps.get()
    assert (row.scheduled_at, row.attempt) == (build.NOON, 2)


def closed(session, status="terminated"):
    with projection.locked(session.pk) as row:
        projection.close(row, status, "Enough", "ann", build.NOON)
    session.refresh_from_db()


def test_what_is_open_when_a_session_ends_is_closed_with_it(session):
    projection.record("s-1", facts(step("active"), first=3))
    build.interrupt(session, "i-1")
    closed(session)
    assert (session.status, session.phase, session.close_reason) == ("terminated", "idle", "Enough")
    assert session.steps.get().status == "canceled"
    assert session.interrupts.get().state == "canceled"
    assert types(session)[-1] == "session.closed"


@pytest.mark.parametrize(
    ("effect", "begun", "outcome"),
    [
        ("write", 1, "outcome_unknown"),
        ("idempotent", 1, "outcome_unknown"),
        ("read", 1, "canceled"),
        ("write", 0, "canceled"),
    ],
)
def test_a_call_left_open_by_a_forced_end_is_never_called_undone_if_it_may_have_run(
    session, effect, begun, outcome
):
    build.call(session, "c-1", "{}", effect=effect, begun_attempt=begun)
    closed(session)
    call = session.calls.get()
    assert call.outcome == outcome
    assert "session was ended" in call.words
    assert session.unknown_outcomes == (1 if outcome == "outcome_unknown" else 0)


def test_late_news_revives_nothing_of_a_closed_session(session):
    projection.record("s-1", facts(step("active"), first=3))
    closed(session)
    last_seq = session.last_seq
    late = facts(step("completed"), fact.PhaseChanged("phase_changed", "acting"), first=4)
    projection.record("s-1", late)
    session.refresh_from_db()
    assert (session.phase, session.last_seq) == ("idle", last_seq)
    assert session.steps.get().status == "canceled"


def test_a_session_ends_once(session):
    closed(session)
    closed(session, "failed")
    assert session.status == "terminated"
    assert types(session).count("session.closed") == 1


def test_a_retry_that_is_told_late_does_not_open_a_step_that_has_ended(session):
    """An attempt that the engine gave up, of a worker that was only slow, may still end its Step."""
    projection.record("s-1", facts(step(), first=3))
    row = session.steps.get()
    with projection.locked("s-1") as locked:
        reports.ended(locked, row, "completed", "completed")
    projection.record("s-1", facts(step(outcome="retrying", attempt=2), first=4))
    row.refresh_from_db()
    assert (row.status, row.outcome, row.attempt) == ("completed", "completed", 1)


def test_calls_of_an_answer_that_the_flow_never_heard_are_canceled(session):
    projection.record("s-1", facts(step(), first=3))
    call = build.call(session, "c-1", "{}", outcome="", model_step="RunModel-1")
    projection.record("s-1", facts(step("canceled", outcome="canceled"), first=4))
    call.refresh_from_db()
    assert call.outcome == "canceled"
    assert "did not run" in call.words
