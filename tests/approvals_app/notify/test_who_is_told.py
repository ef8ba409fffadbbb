"""What happens to an approval is written down with it, and the right people are told of it."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import Group
from django.core import mail
from django.utils import timezone

from approvals_app.models import Delegation, Interrupt, Notification, PermissionKey
from approvals_app.notify import outbox
from sessions_app.flow import fact, terms
from tests.approvals_app.notify.conftest import KEY, channel, deliveries, told_by_mail
from tests.sessions_app.api import build

pytestmark = pytest.mark.django_db

LATER = "2026-12-24T12:00:00+00:00"


def told() -> list[tuple[str, str]]:
    """(address, subject) of the mails that were sent."""
    return sorted((message.to[0], message.subject) for message in mail.outbox)


def test_whoever_may_decide_is_told_when_an_approval_is_asked_for(news, approver):
    news.ask()
    outbox.sweep()
    assert told() == [("ann@example.com", "[Dexweb] Approval asked for: shop__issue_refund")]


def test_nobody_is_told_before_the_approval_is_there_to_be_decided(news, approver):
    news.ask()
    assert mail.outbox == []
    assert Interrupt.objects.pending().filter(pk="apr-1").exists()
    assert Notification.objects.filter(interrupt="apr-1", event="ask").exists()


def test_what_is_rolled_back_is_told_to_nobody(news, approver, monkeypatch):
    def broken(session):
        raise RuntimeError

    with monkeypatch.context() as patched:
        patched.setattr("sessions_app.projection.write", broken)
        with pytest.raises(RuntimeError):
            news.ask()
    assert not Notification.objects.exists()


def test_a_fact_that_is_recorded_twice_is_told_once(news, approver):
    interrupt = news.ask()
    news.session.refresh_from_db()
    reminder = fact.InterruptReminded("interrupt_reminded", interrupt.pk, 60.0)
    told = fact.Fact(news.session.last_fact + 1, timezone.now().isoformat(), reminder)
    from sessions_app import projection

    projection.record(news.session.pk, [told])
    projection.record(news.session.pk, [told])
    outbox.sweep()
    outbox.sweep()
    assert [event for event, _, _ in deliveries()] == ["ask", "remind"]


@pytest.mark.parametrize(
    ("state", "subject"),
    [
        ("approved", "[Dexweb] Approved by its policy, since nobody answered: shop__issue_refund"),
        ("expired", "[Dexweb] Expired, nobody decided in time: shop__issue_refund"),
        ("canceled", "[Dexweb] Canceled, no decision is needed: shop__issue_refund"),
        ("superseded", "[Dexweb] Superseded, no decision is needed: shop__issue_refund"),
    ],
)
def test_each_end_has_words_of_its_own(news, state, subject):
    told_by_mail(build.person("ann", *build.LOOK, keys=(KEY,)), "decide", "expire", "cancel")
    news.ask()
    news.close(state)
    outbox.sweep()
    assert told() == [("ann@example.com", subject)]


def test_a_decision_is_told_to_others_and_to_who_started_the_session_but_not_to_who_made_it(news):
    ann = told_by_mail(build.person("ann", *build.LOOK, keys=(KEY,)), "decide")
    told_by_mail(build.person("bob", *build.LOOK, keys=("tools.approve",)), "decide")
    told_by_mail(build.person("cho", *build.LOOK), "decide")
    starter = told_by_mail(news.session.started_by, "decide")
    build.person("x")
    starter.user_permissions.set(ann.user_permissions.all())
    ann.groups.first().user_set.add(build.person("dan", *build.LOOK))
    news.ask()
    news.close("rejected", by=ann)
    outbox.sweep()
    subject = "[Dexweb] Rejected by ann: shop__issue_refund"
    assert told() == [("starter@example.com", subject)]


@pytest.mark.parametrize("why", ["no wish", "mail off", "no address", "inactive", "not this event"])
def test_who_did_not_ask_for_mail_or_cannot_get_it_gets_none(news, approver, why):
    wish = approver.notification_preference
    if why == "no wish":
        wish.delete()
    if why == "mail off":
        wish.mail = False
    if why == "not this event":
        wish.events = ["expire"]
    if why == "no address":
        approver.email = ""
    if why == "inactive":
        approver.is_active = False
    approver.save()
    if why != "no wish":
        wish.save()
    news.ask()
    outbox.sweep()
    assert told() == []
    # What concerns nobody isn't kept either.
    assert not Notification.objects.exists()


def test_who_is_kept_out_by_four_eyes_is_not_called_to_decide(news, approver):
    news.session.started_by = approver
    news.session.save()
    build.message(news.session, "hi", author=approver, turn=1)
    news.ask(four_eyes=True)
    outbox.sweep()
    assert told() == []


def test_who_was_handed_the_permission_is_called_too(news, approver):
    now = timezone.now()
    Delegation.objects.create(
        giver=approver,
        receiver=told_by_mail(build.person("deputy", *build.LOOK)),
        key=KEY,
        reason="On leave",
        starts_at=now - timedelta(hours=1),
        ends_at=now + timedelta(days=1),
    )
    news.ask()
    outbox.sweep()
    assert [address for address, _ in told()] == ["ann@example.com", "deputy@example.com"]


def test_an_escalation_calls_the_next_group_and_the_end_is_told_to_both(news):
    channel("mail", "desk", email="desk@example.com")
    channel("mail", "leads", key="refunds.lead", email="leads@example.com")
    interrupt = news.ask(escalation=[terms.EscalationStep("refunds.lead", 600)])
    outbox.sweep()
    news.tell(
        fact.InterruptEscalated("interrupt_escalated", interrupt.pk, "refunds.lead", LATER, 1)
    )
    outbox.sweep()
    news.close("expired")
    outbox.sweep()
    assert told() == [
        ("desk@example.com", "[Dexweb] Approval asked for: shop__issue_refund"),
        ("desk@example.com", "[Dexweb] Expired, nobody decided in time: shop__issue_refund"),
        ("leads@example.com", "[Dexweb] Expired, nobody decided in time: shop__issue_refund"),
        (
            "leads@example.com",
            "[Dexweb] Nobody answered; now refunds.lead is asked: shop__issue_refund",
        ),
    ]


def test_after_an_edit_all_are_called_to_vote_again_and_above_all_who_had_voted(news):
    people = {}
    for name, events in (
        ("ann", ["edit"]),
        ("bob", ["expire"]),
        ("cy", ["edit"]),
        ("dan", ["ask"]),
    ):
        people[name] = told_by_mail(build.person(name, *build.LOOK), *events)
    key, _ = PermissionKey.objects.get_or_create(key=KEY)
    key.groups.add(Group.objects.create(name="Approvers"))
    key.groups.get().user_set.set(people.values())
    interrupt = news.ask(approve_n=3)

    def vote(name, revision, args=""):
        actor = terms.Actor(people[name].pk, name)
        more = (args, "1" * 64) if args else ()
        news.tell(
            fact.VoteCast(
                "vote_cast", interrupt.pk, revision, "approve", actor, None, "", "r", *more
            )
        )

    vote("bob", 1)
    outbox.sweep()
    mail.outbox.clear()
    vote("cy", 2, '{"amount": 5}')
    outbox.sweep()
    subject = "[Dexweb] The arguments were edited by cy, vote again: shop__issue_refund"
    assert told() == [("ann@example.com", subject), ("bob@example.com", subject)]
    assert "Votes that no longer count: bob\n" in mail.outbox[0].body


def test_an_edit_that_decides_by_itself_calls_nobody_to_vote(news, approver):
    interrupt = news.ask(editable=True)
    outbox.sweep()
    bob = terms.Actor(build.person("bob").pk, "bob")
    edit = ('{"amount": 5}', "1" * 64)
    news.tell(
        fact.VoteCast("vote_cast", interrupt.pk, 2, "approve", bob, None, "", "r", *edit),
        fact.InterruptClosed("interrupt_closed", interrupt.pk, "approved", bob, "", "r"),
    )
    assert not Notification.objects.filter(event="edit").exists()


def test_an_ended_session_takes_its_open_approvals_back_and_says_so(news):
    channel("mail", email="desk@example.com", events=["cancel"])
    news.ask()
    news.tell(fact.SessionClosed("session_closed", "canceled", "Not needed.", None))
    outbox.sweep()
    assert told() == [
        ("desk@example.com", "[Dexweb] Canceled, no decision is needed: shop__issue_refund")
    ]


def test_recording_a_fact_costs_the_same_however_many_are_to_be_told(
    news, django_assert_max_num_queries
):
    for number in range(12):
        told_by_mail(build.person(f"p{number}", *build.LOOK, keys=(KEY,)))
    with django_assert_max_num_queries(30):
        news.ask()
