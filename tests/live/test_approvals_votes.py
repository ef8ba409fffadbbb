"""Several people decide on one call: a person counts once, and an edit asks all of them anew."""

import json
import threading
import uuid

import pytest
from django.contrib.auth.models import User
from django.db import connections

from approvals_app.models import AuditEntry, Decision, Interrupt
from dexweb.engine.errors import (
    AlreadyVoted,
    DexwebError,
    InterruptAlreadyDecided,
    InvalidArguments,
    NotEditable,
    RpcLockConflict,
    StaleInterrupt,
)
from tests.live.conftest import Live, assert_stream_is_whole, until

pytestmark = pytest.mark.usefixtures("standing_worker")

REFUND = {"order_id": "A-1042", "amount": 20, "currency": "EUR", "reason": "late"}
SCRIPT = [{"calls": [{"tool": "shop__issue_refund", "args": REFUND}]}, {"text": "Done."}]


def ask(live: Live, **approval: object) -> tuple[list[User], Interrupt]:
    """Three people who may decide, and what they are asked."""
    live.agent(SCRIPT, pool="standing", approval=approval)
    people = [live.person(name, "refunds.approve") for name in ("ann", "bob", "cy")]
    return people, live.ask(live.start(people[0]))


def votes(interrupt: Interrupt) -> list[dict[str, object]]:
    return [event.payload for event in interrupt.session.events.filter(type="approval.voted")]


def test_two_of_three_must_approve_and_each_vote_says_how_far_it_is(live: Live) -> None:
    (ann, bob, cy), interrupt = ask(live, approve_n=2)
    assert live.decide(ann, interrupt).state == "delivered"
    interrupt.refresh_from_db()
    assert interrupt.state == "pending"
    assert live.ledger("refunds") == []

    live.decide(bob, interrupt)
    live.idle(interrupt.session)
    interrupt.refresh_from_db()
    assert (interrupt.state, interrupt.decided_by) == ("approved", bob)
    assert [(vote["by"], vote["approvals"]) for vote in votes(interrupt)] == [
        ("ann", 1),
        ("bob", 2),
    ]
    assert len(live.ledger("refunds")) == 1
    assert list(interrupt.votes.values_list("person_name", flat=True)) == ["ann", "bob"]
    with pytest.raises(InterruptAlreadyDecided) as late:
        live.decide(cy, interrupt)
    assert late.value.by == "bob"
    assert_stream_is_whole(interrupt.session)


def test_a_person_counts_once_whatever_they_send(live: Live) -> None:
    (ann, _, _), interrupt = ask(live, approve_n=2)
    first = live.decide(ann, interrupt)
    assert live.decide(ann, interrupt) == first
    with pytest.raises(InterruptAlreadyDecided):
        live.decide(ann, interrupt, "reject")
    # A request that the rows would have stopped is stopped by the Flow too.
    Decision.objects.all().delete()
    with pytest.raises(AlreadyVoted):
        live.decide(ann, interrupt)
    assert interrupt.votes.count() == 1
    assert len(votes(interrupt)) == 1
    assert live.ledger("refunds") == []


def test_one_rejection_ends_it_unless_more_are_asked_for(live: Live) -> None:
    (ann, bob, cy), interrupt = ask(live, approve_n=2, deny_m=2)
    live.decide(ann, interrupt)
    live.decide(bob, interrupt, "reject", "Too much.")
    interrupt.refresh_from_db()
    assert interrupt.state == "pending"
    live.decide(cy, interrupt, "reject", "Far too much.")
    live.idle(interrupt.session)
    interrupt.refresh_from_db()
    assert (interrupt.state, interrupt.reason) == ("rejected", "Far too much.")
    assert live.call(interrupt.session, "issue_refund").outcome == "rejected"
    assert live.ledger("refunds") == []


def test_an_edit_runs_exactly_as_approved_and_the_model_is_told(live: Live) -> None:
    (ann, _, _), interrupt = ask(live, editable=True)
    edited = {**REFUND, "amount": 12.5, "reason": "late, as agreed"}
    live.decide(ann, interrupt, args=json.dumps(edited))
    live.idle(interrupt.session)

    call = live.call(interrupt.session, "issue_refund")
    interrupt.refresh_from_db()
    assert json.loads(call.args) == edited
    assert json.loads(call.original_args) == REFUND
    assert call.ran_hash == call.args_hash == interrupt.args_hash
    assert (interrupt.revision, interrupt.edited_by_name) == (2, "ann")
    [row] = live.ledger("refunds")
    assert row[3:6] == ("12.50", "EUR", "late, as agreed")
    assert call.words.startswith("ann changed the arguments of this call")
    assert "amount was 20 and ran as 12.5" in call.words
    assert 'reason was "late" and ran as "late, as agreed"' in call.words
    assert "order_id" not in call.words.splitlines()[0]
    assert call.result in call.words


def test_an_edit_asks_those_who_had_voted_anew(live: Live) -> None:
    (ann, bob, _), interrupt = ask(live, approve_n=2, editable=True)
    live.decide(ann, interrupt)
    live.decide(bob, interrupt, args=json.dumps({**REFUND, "amount": 5}))
    shown = interrupt.args_hash
    interrupt.refresh_from_db()
    assert (interrupt.state, interrupt.revision) == ("pending", 2)
    assert interrupt.args_hash != shown
    assert votes(interrupt)[-1]["approvals"] == 1

    interrupt.args_hash, interrupt.revision = shown, 1
    with pytest.raises(StaleInterrupt):
        live.decide(live.person("dan", "refunds.approve"), interrupt)
    interrupt.refresh_from_db()
    live.decide(ann, interrupt)
    live.idle(interrupt.session)
    assert [row[3] for row in live.ledger("refunds")] == ["5.00"]


@pytest.mark.parametrize(
    ("args", "fault"),
    [
        ('{"order_id": "A-1042", "amount": "20", "currency": "EUR", "reason": "x"}', "amount"),
        ('{"order_id": "A-1042", "amount": 20, "currency": "EUR"}', "reason"),
        ('{"order_id": "A-1042", "amount": 20, "amount": 2, "currency": "EUR"}', "twice"),
        ("[1]", "object"),
        ("{", "JSON"),
    ],
)
def test_edited_arguments_that_do_not_fit_the_tool_decide_nothing(
    live: Live, args: str, fault: str
) -> None:
    (ann, _, _), interrupt = ask(live, editable=True)
    with pytest.raises(InvalidArguments) as refusal:
        live.decide(ann, interrupt, args=args)
    assert fault in refusal.value.message
    interrupt.refresh_from_db()
    assert (interrupt.state, interrupt.revision) == ("pending", 1)
    assert not interrupt.decisions.exists()


def test_what_may_not_be_edited_is_approved_as_it_is_or_rejected(live: Live) -> None:
    (ann, _, _), interrupt = ask(live, editable=False)
    with pytest.raises(NotEditable):
        live.decide(ann, interrupt, args=json.dumps({**REFUND, "amount": 5}))
    live.decide(ann, interrupt, "reject", args=json.dumps({**REFUND, "amount": 5}))
    interrupt.refresh_from_db()
    assert (interrupt.state, interrupt.revision) == ("rejected", 1)


def test_the_same_arguments_written_differently_are_no_edit(live: Live) -> None:
    (ann, _, _), interrupt = ask(live, editable=True)
    live.decide(ann, interrupt, args=json.dumps({**REFUND, "amount": 20.0}, indent=4))
    live.idle(interrupt.session)
    call = live.call(interrupt.session, "issue_refund")
    interrupt.refresh_from_db()
    assert (interrupt.revision, call.original_args, call.edited_by_name) == (1, "", "")
    assert not call.words.startswith("ann changed")


def test_many_people_and_requests_at_once_make_one_outcome_of_two_votes(live: Live) -> None:
    live.agent(SCRIPT, pool="standing", approval={"approve_n": 2})
    people = [live.person(f"p{number}", "refunds.approve") for number in range(4)]
    interrupt = live.ask(live.start(people[0]))
    results = all_at_once(live, [person for person in people for _ in range(2)], interrupt)
    live.idle(interrupt.session)

    interrupt.refresh_from_db()
    assert interrupt.state == "approved"
    counted = set(interrupt.votes.values_list("person_name", flat=True))
    assert (interrupt.votes.count(), len(counted)) == (2, 2)
    assert len(live.ledger("refunds")) == 1
    for name, result in results:
        told = (InterruptAlreadyDecided, AlreadyVoted, RpcLockConflict)
        assert isinstance(result, (Decision, *told) if name in counted else told), (name, result)
    # Whoever counts is told so by one of their two presses at least.
    assert counted == {name for name, result in results if isinstance(result, Decision)}
    entries = AuditEntry.objects.filter(action="decision.approve")
    assert sorted(entries.values_list("actor_name", flat=True)) == sorted(counted)
    closed = interrupt.session.events.filter(type="approval.decided")
    assert closed.count() == 1


def test_who_says_the_same_again_once_all_is_over_gets_their_own_first_answer(live: Live) -> None:
    live.agent(SCRIPT, pool="standing")
    ann, ben = live.person("ann", "refunds.approve"), live.person("ben", "refunds.approve")
    interrupt = live.ask(live.start(ann))
    first = live.decide(ann, interrupt)
    live.idle(interrupt.session)
    assert live.decide(ann, interrupt).pk == first.pk
    with pytest.raises(InterruptAlreadyDecided):
        live.decide(ann, interrupt, "reject")
    with pytest.raises(InterruptAlreadyDecided):
        live.decide(ben, interrupt)
    assert AuditEntry.objects.filter(action="decision.approve").count() == 1


def all_at_once(
    live: Live, people: list[User], interrupt: Interrupt
) -> list[tuple[str, Decision | DexwebError]]:
    """What each request got, all of them with ids of their own and sent in the same instant."""
    barrier = threading.Barrier(len(people))
    results: list[tuple[str, Decision | DexwebError]] = []

    def press(person: User) -> None:
        barrier.wait()
        try:
            found: Decision | DexwebError = live.decide(
                person, interrupt, request_id=str(uuid.uuid4())
            )
        except DexwebError as error:
            found = error
        finally:
            connections.close_all()
        results.append((person.username, found))

    threads = [threading.Thread(target=press, args=(person,)) for person in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == len(people)
    return results


def test_a_vote_that_died_on_its_way_back_is_delivered_and_counted_once(live: Live) -> None:
    (ann, bob, _), interrupt = ask(live, approve_n=2)
    decision = live.decide(ann, interrupt)
    Decision.objects.filter(pk=decision.pk).update(state="delivery_pending", delivered_at=None)
    until(lambda: interrupt.decisions.filter(state="delivered").exists(), "the sweeper")
    assert interrupt.votes.count() == 1
    live.decide(bob, interrupt)
    live.idle(interrupt.session)
    assert len(live.ledger("refunds")) == 1
