"""The ladder to a deadline: reminders, those asked next, and what happens when nobody answers."""

import uuid
from datetime import timedelta

import pytest
from django.utils import timezone

from approvals_app import holds
from approvals_app.models import AuditEntry, Interrupt
from dexweb.engine.errors import (
    DeadlineInPast,
    DeadlineNotLater,
    DeadlineTooFar,
    DecisionNotAllowed,
    InterruptExpired,
)
from sessions_app.models import Agent
from tests.live.conftest import Live, assert_stream_is_whole, until

pytestmark = pytest.mark.usefixtures("standing_worker")

REFUND = {"order_id": "A-1042", "amount": 20, "currency": "EUR", "reason": "late"}
SCRIPT = [{"calls": [{"tool": "shop__issue_refund", "args": REFUND}]}, {"text": "Done."}]
MAIL = {"to": "ann@example.org", "subject": "Sorry", "body": "It came late."}
MAILS = [{"calls": [{"tool": "shop__send_email", "args": MAIL}]}, {"text": "Done."}]


def types(interrupt: Interrupt) -> list[str]:
    """What was told of it, in order."""
    events = interrupt.session.events.filter(payload__interrupt_id=interrupt.pk).order_by("seq")
    return [event.type.removeprefix("approval.") for event in events]


def test_a_reminder_comes_before_the_deadline_and_then_it_expires(live: Live) -> None:
    live.agent(SCRIPT, pool="standing", deadline="3s", approval={"reminders": ["2s", "1s", "1h"]})
    ann = live.person("ann", "refunds.approve")
    interrupt = live.ask(live.start(ann))
    live.idle(interrupt.session)
    assert types(interrupt) == ["requested", "reminded", "reminded", "expired"]
    left = interrupt.session.events.filter(type="approval.reminded").values_list(
        "payload__seconds_left", flat=True
    )
    assert [round(seconds) for seconds in left] == [2, 1]
    assert_stream_is_whole(interrupt.session)


def test_nobody_answers_so_the_next_in_line_is_asked_and_the_first_may_no_longer_decide(
    live: Live,
) -> None:
    live.agent(
        SCRIPT,
        pool="standing",
        deadline="2s",
        approval={
            "at_deadline": "escalate",
            "escalation": [{"permission": "refunds.lead", "deadline": "30s"}],
        },
    )
    ann, lead = live.person("ann", "refunds.approve"), live.person("lead", "refunds.lead")
    interrupt = live.ask(live.start(ann))
    with pytest.raises(DecisionNotAllowed):
        live.decide(lead, interrupt)
    first = interrupt.deadline
    until(lambda: "escalated" in types(interrupt), "the escalation")
    interrupt.refresh_from_db()
    assert (interrupt.permission, interrupt.level, interrupt.state) == (
        "refunds.lead",
        1,
        "pending",
    )
    assert interrupt.deadline > first + timedelta(seconds=28)

    with pytest.raises(DecisionNotAllowed) as refusal:
        live.decide(ann, interrupt)
    assert refusal.value.permission == "refunds.lead"
    live.decide(lead, interrupt)
    live.idle(interrupt.session)
    assert types(interrupt) == ["requested", "escalated", "decided"]
    assert len(live.ledger("refunds")) == 1


def test_when_nobody_in_the_line_answers_it_expires(live: Live) -> None:
    step = {"permission": "refunds.lead", "deadline": "1s"}
    live.agent(
        SCRIPT,
        pool="standing",
        deadline="1s",
        approval={"at_deadline": "escalate", "escalation": [step, step]},
    )
    ann = live.person("ann", "refunds.approve", "refunds.lead")
    interrupt = live.ask(live.start(ann))
    live.idle(interrupt.session)
    assert types(interrupt) == ["requested", "escalated", "escalated", "expired"]
    with pytest.raises(InterruptExpired):
        live.decide(ann, interrupt)
    assert live.call(interrupt.session, "issue_refund").outcome == "expired"
    assert live.ledger("refunds") == []


def test_what_is_no_write_may_run_because_nobody_objected(live: Live) -> None:
    live.agent(MAILS, pool="standing")
    Agent.objects.get().tools.filter(pattern="shop__send_email").update(
        needs_approval=True, at_deadline="approve", deadline=timedelta(seconds=1)
    )
    session = live.start(live.person("ann"))
    interrupt = live.ask(session)
    live.idle(session)
    interrupt.refresh_from_db()
    assert (interrupt.state, interrupt.decided_by_name) == ("approved", "")
    assert interrupt.reason == "Nobody objected before the deadline."
    assert live.call(session, "send_email").outcome == "completed"
    assert len(live.ledger("emails")) == 1


def test_a_write_never_runs_because_nobody_answered_whatever_a_row_says(live: Live) -> None:
    live.agent(SCRIPT, pool="standing", deadline="1s")
    # The file and the admin refuse this; a row may be written by other hands.
    Agent.objects.get().tools.update(at_deadline="approve")
    session = live.start(live.person("ann"))
    interrupt = live.ask(session)
    live.idle(session)
    interrupt.refresh_from_db()
    assert interrupt.state == "expired"
    assert live.ledger("refunds") == []


def test_a_moved_deadline_holds_and_is_audited(live: Live) -> None:
    live.agent(SCRIPT, pool="standing", deadline="3s")
    ann = live.person("ann", "refunds.approve")
    interrupt = live.ask(live.start(ann))
    before = interrupt.deadline
    later = timezone.now() + timedelta(hours=2)
    holds.extend(ann, interrupt.pk, until=later, request_id=str(uuid.uuid4()))
    for moment, refusal in (
        (timezone.now(), DeadlineInPast),
        (later - timedelta(minutes=1), DeadlineNotLater),
        (timezone.now() + timedelta(days=31), DeadlineTooFar),
    ):
        with pytest.raises(refusal):
            holds.extend(ann, interrupt.pk, until=moment, request_id=str(uuid.uuid4()))
    interrupt.refresh_from_db()
    assert interrupt.deadline == later
    entry = AuditEntry.objects.get(action="deadline.extended")
    assert entry.detail["before"] == before.isoformat()
    assert entry.detail["after"] == later.isoformat()

    until(lambda: timezone.now() > before + timedelta(seconds=1), "the first deadline to pass")
    assert live.decide(ann, interrupt).state == "delivered"
    live.idle(interrupt.session)
    assert len(live.ledger("refunds")) == 1


def test_how_a_wait_ended_is_one_word_everywhere(live: Live) -> None:
    """Rejected, expired and canceled are never taken for one another."""
    ann = live.person("ann", "refunds.approve")
    live.agent(SCRIPT, pool="standing")
    rejected = live.ask(live.start(ann))
    live.decide(ann, rejected, "reject", "No.")
    live.agent(SCRIPT, pool="standing", deadline="1s", name="hasty")
    expired = live.ask(live.start(ann, agent="hasty"))
    canceled = live.ask(live.start(ann))
    cancel(ann, canceled)
    model = {"rejected": "ann rejected", "expired": "Nobody decided", "canceled": "was canceled"}
    told = {"rejected": "decided", "expired": "expired", "canceled": "canceled"}
    for interrupt, word in ((rejected, "rejected"), (expired, "expired"), (canceled, "canceled")):
        live.idle(interrupt.session)
        interrupt.refresh_from_db()
        call = interrupt.session.calls.get()
        assert (interrupt.state, call.outcome) == (word, word)
        assert model[word] in call.words
        assert types(interrupt)[-1] == told[word]
        wait = interrupt.session.steps.get(type="AwaitToolApproval")
        assert wait.outcome == word


def cancel(person: object, interrupt: Interrupt) -> None:
    from sessions_app import actions

    actions.cancel_turn(person, interrupt.session_id, "", str(uuid.uuid4()))  # type: ignore[arg-type]
