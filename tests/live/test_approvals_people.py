"""Who may decide, and what becomes of an approval when that changes before the tool runs."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from approvals_app.models import AuditEntry, Delegation, Interrupt
from dexweb.engine.errors import AlreadyVoted, DecisionNotAllowed, FourEyes
from sessions_app.models import Agent, Connection
from tests.live.conftest import Live

pytestmark = pytest.mark.usefixtures("standing_worker")

REFUND = {"order_id": "A-1042", "amount": 20, "currency": "EUR", "reason": "late"}
SCRIPT = [{"calls": [{"tool": "shop__issue_refund", "args": REFUND}]}, {"text": "Done."}]


def ask(live: Live, starter: User, **approval: object) -> Interrupt:
    live.agent(SCRIPT, pool="standing", approval=approval)
    return live.ask(live.start(starter))


def lend(giver: User, receiver: User, key: str = "refunds.approve") -> Delegation:
    now = timezone.now()
    return Delegation.objects.create(
        giver=giver,
        receiver=receiver,
        key=key,
        reason="Away this week.",
        starts_at=now - timedelta(minutes=1),
        ends_at=now + timedelta(hours=1),
    )


def test_under_four_eyes_the_starter_never_decides_not_even_as_a_superuser(live: Live) -> None:
    root = live.person("root", "refunds.approve")
    User.objects.filter(pk=root.pk).update(is_superuser=True)
    root = User.objects.get(pk=root.pk)
    bob = live.person("bob", "refunds.approve")
    interrupt = ask(live, root, four_eyes=True)
    with pytest.raises(FourEyes) as refusal:
        live.decide(root, interrupt)
    assert "you started this session" in refusal.value.message
    assert AuditEntry.objects.get(action="decision.refused").detail["code"] == "four_eyes"

    live.decide(bob, interrupt)
    live.idle(interrupt.session)
    assert len(live.ledger("refunds")) == 1


def test_four_eyes_sees_through_a_delegation(live: Live) -> None:
    ann = live.person("ann", "refunds.approve")
    bob, cy = live.person("bob"), live.person("cy", "refunds.approve")
    interrupt = ask(live, ann, four_eyes=True)
    lend(ann, bob)
    with pytest.raises(FourEyes):
        live.decide(bob, interrupt)
    # Even who holds the key is a delegate of the one who asked.
    lent = lend(ann, cy, "mails.approve")
    with pytest.raises(FourEyes):
        live.decide(cy, interrupt)
    lent.revoked_at = timezone.now()
    lent.save()
    live.decide(cy, interrupt)
    live.idle(interrupt.session)
    assert len(live.ledger("refunds")) == 1


def test_who_asked_being_unknown_nobody_decides_under_four_eyes(live: Live) -> None:
    ann, bob = (live.person(name, "refunds.approve") for name in ("ann", "bob"))
    interrupt = ask(live, ann, four_eyes=True)
    interrupt.session.messages.update(author=None)
    with pytest.raises(FourEyes) as refusal:
        live.decide(bob, interrupt)
    assert "not known who asked" in refusal.value.message


def test_a_decision_for_somebody_else_says_so(live: Live) -> None:
    ann, bob = live.person("ann", "refunds.approve"), live.person("bob")
    interrupt = ask(live, ann, approve_n=2)
    with pytest.raises(DecisionNotAllowed):
        live.decide(bob, interrupt)
    lend(ann, bob)
    live.decide(bob, interrupt)
    vote = interrupt.votes.get()
    assert (vote.person, vote.on_behalf_of_name) == (bob, "ann")
    [told] = interrupt.session.events.filter(type="approval.voted")
    assert (told.payload["by"], told.payload["on_behalf_of"]) == ("bob", "ann")
    entry = AuditEntry.objects.get(action="decision.approve")
    assert entry.detail["on_behalf_of"] == "ann"

    # The two of them are one voice.
    with pytest.raises(AlreadyVoted) as refusal:
        live.decide(ann, interrupt)
    assert refusal.value.by == "bob"
    assert live.ledger("refunds") == []


def revoked(lent: Delegation) -> None:
    Delegation.objects.filter(pk=lent.pk).update(revoked_at=timezone.now())


def key_of_the_giver_lost(lent: Delegation) -> None:
    lent.giver.groups.clear()


@pytest.mark.parametrize("change", [revoked, key_of_the_giver_lost])
def test_what_was_lent_no_longer_counts_once_it_is_taken_back(live: Live, change) -> None:  # type: ignore[no-untyped-def]
    ann, bob = live.person("ann", "refunds.approve"), live.person("bob")
    cy, dan = (live.person(name, "refunds.approve") for name in ("cy", "dan"))
    interrupt = ask(live, ann, approve_n=2)
    lent = lend(ann, bob)
    live.decide(bob, interrupt)
    change(lent)
    live.decide(cy, interrupt)
    fresh = live.ask_anew(interrupt.session, interrupt)
    [told] = interrupt.session.events.filter(type="tool.invalidated")
    assert "bob may not decide this any more" in told.payload["words"]
    with pytest.raises(DecisionNotAllowed):
        live.decide(bob, fresh)
    live.decide(cy, fresh)
    live.decide(dan, fresh)
    live.idle(interrupt.session)
    assert len(live.ledger("refunds")) == 1


def connection_leads_elsewhere() -> None:
    shop = Connection.objects.get()
    Connection.objects.update(env={**shop.env, "SHOP_REGION": "elsewhere"})


def policy(**changes: object) -> None:
    Agent.objects.get().tools.filter(pattern="shop__issue_refund").update(**changes)


STRICTER = {
    "another permission": (lambda: policy(permission="refunds.large"), "refunds.large"),
    "more approvals": (lambda: policy(approve_n=2), "2 approvals"),
    "four eyes": (lambda: policy(four_eyes=True), "second pair of eyes"),
    "a reason": (lambda: policy(reason_on_approve=True), "asks for a reason"),
    "another program": (connection_leads_elsewhere, "connection shop was changed"),
}


@pytest.mark.parametrize(("change", "named"), STRICTER.values(), ids=list(STRICTER))
def test_what_became_stricter_while_it_was_pending_voids_and_asks_anew(
    live: Live,
    change,
    named: str,  # type: ignore[no-untyped-def]
) -> None:
    ann = live.person("ann", "refunds.approve", "refunds.large")
    interrupt = ask(live, ann)
    change()
    live.decide(ann, interrupt)
    live.ask_anew(interrupt.session, interrupt)
    [told] = interrupt.session.events.filter(type="tool.invalidated")
    assert named in told.payload["words"]
    assert live.call(interrupt.session, "issue_refund").outcome == ""


def test_what_became_looser_does_not_loosen_what_is_pending(live: Live) -> None:
    ann, bob = (live.person(name, "refunds.approve") for name in ("ann", "bob"))
    mate = live.person("mate", "tools.approve")
    interrupt = ask(live, ann, approve_n=2, four_eyes=False)
    policy(needs_approval=False, approve_n=1, permission="tools.approve")
    with pytest.raises(DecisionNotAllowed):
        live.decide(mate, interrupt)
    live.decide(ann, interrupt)
    interrupt.refresh_from_db()
    assert interrupt.state == "pending"
    assert live.ledger("refunds") == []
    live.decide(bob, interrupt)
    live.idle(interrupt.session)
    assert len(live.ledger("refunds")) == 1


def test_a_tool_that_was_switched_off_while_it_was_pending_does_not_run(live: Live) -> None:
    ann = live.person("ann", "refunds.approve")
    interrupt = ask(live, ann)
    Connection.objects.update(enabled=False)
    live.decide(ann, interrupt)
    live.idle(interrupt.session)
    call = live.call(interrupt.session, "issue_refund")
    assert (call.outcome, call.begun_attempt) == ("failed", 0)
    assert "disabled" in call.words
    assert live.ledger("refunds") == []


def test_an_edit_that_is_asked_for_anew_still_shows_what_the_agent_wanted(live: Live) -> None:
    ann = live.person("ann", "refunds.approve", "refunds.large")
    interrupt = ask(live, ann, editable=True)
    policy(permission="refunds.large")
    live.decide(
        ann, interrupt, args='{"order_id":"A-1042","amount":5,"currency":"EUR","reason":"x"}'
    )
    fresh = live.ask_anew(interrupt.session, interrupt)
    assert '"amount": 20' in fresh.original_args
    assert '"amount": 5' in fresh.args
    assert fresh.edited_by_name == "ann"
    live.decide(ann, fresh)
    live.idle(interrupt.session)
    assert [row[3] for row in live.ledger("refunds")] == ["5.00"]
    assert live.call(interrupt.session, "issue_refund").words.startswith("ann changed")
