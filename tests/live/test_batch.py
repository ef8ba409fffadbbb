"""Several approvals decided together on the real engine."""

import uuid
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from approvals_app import batch, delegations
from approvals_app.models import AuditEntry, Decision, Interrupt
from tests.live.conftest import Live, until

pytestmark = pytest.mark.usefixtures("standing_worker")


def refund(order: str) -> dict[str, object]:
    args = {"order_id": order, "amount": 20, "currency": "EUR", "reason": "late"}
    return {"tool": "shop__issue_refund", "args": args}


@pytest.fixture
def desk(live: Live) -> Live:
    calls = [refund("A-1042"), refund("A-0977"), refund("A-0831")]
    live.agent([{"text": "Three refunds.", "calls": calls}, {"text": "Done."}], pool="standing")
    return live


def waiting(session) -> list[Interrupt]:
    until(lambda: session.interrupts.pending().count() == 3, "three approvals")
    return list(session.interrupts.order_by("id"))


def asked(rows: list[Interrupt], verdict: str = "approve", reason: str = "All late") -> batch.Asked:
    items = tuple(batch.Named(row.pk, row.revision, row.args_hash) for row in rows)
    return batch.Asked(str(uuid.uuid4()), verdict, items, reason)


def test_one_that_somebody_decided_meanwhile_is_refused_and_the_others_run_once(desk: Live) -> None:
    boss, other = desk.person("boss", "refunds.approve"), desk.person("other", "refunds.approve")
    session = desk.start(boss)
    rows = waiting(session)
    together = asked(rows)
    desk.decide(other, rows[1], "reject", "Not this one")

    results = batch.decide_all(boss, together)
    again = batch.decide_all(boss, together)
    desk.idle(session)

    assert [result.outcome for result in results] == ["delivered", "refused", "delivered"]
    assert results[1].error.code == "interrupt_already_decided"
    assert [result.outcome for result in again] == [result.outcome for result in results]
    assert len(desk.ledger("refunds")) == 2
    assert AuditEntry.objects.filter(action="decision.approve").count() == 2


def test_a_delegate_decides_a_batch_for_the_one_who_handed_it_over(desk: Live) -> None:
    boss, deputy = desk.person("boss", "refunds.approve"), desk.person("deputy")
    session = desk.start(boss)
    rows = waiting(session)
    until_tomorrow = timezone.now() + timedelta(days=1)
    delegations.give(
        boss, delegations.Handed("deputy", "refunds.approve", "On leave", until_tomorrow)
    )

    results = batch.decide_all(deputy, asked(rows))
    desk.idle(session)

    assert {result.outcome for result in results} == {"delivered"}
    assert set(Decision.objects.values_list("on_behalf_of__username", flat=True)) == {"boss"}
    assert len(desk.ledger("refunds")) == 3


def test_a_vote_of_several_is_recorded_and_says_how_many_are_missing(live: Live, client) -> None:
    live.agent(
        [{"calls": [refund("A-1042")]}, {"text": "Done."}],
        pool="standing",
        approval={"approve_n": 2},
    )
    ann, bob = (live.person(name, "refunds.approve") for name in ("ann", "bob"))
    interrupt = live.ask(live.start(ann))
    named = f"{interrupt.pk}:{interrupt.revision}:{interrupt.args_hash}"

    def post(person: User) -> str:
        client.force_login(person)
        sent = {"batch_id": str(uuid.uuid4()), "verdict": "approve", "item": [named]}
        return client.post("/approvals/batch/", sent).content.decode()

    assert "is recorded: 1 of 2 approvals, 1 more needed." in post(ann)
    assert live.ledger("refunds") == []
    assert "The engine has taken it." in post(bob)
    live.idle(interrupt.session)
    assert len(live.ledger("refunds")) == 1
