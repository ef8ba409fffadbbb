"""Receipts: what was asked, what was approved by whom, and what ran."""

import json

import pytest
from django.utils import timezone

from approvals_app.models import Decision, Vote
from approvals_app.receipt import receipt_of
from tests.sessions_app.api import build

pytestmark = pytest.mark.django_db
ARGS = '{"amount": 12.50}'


def decided(state="approved", ran="same", **fields):
    session = build.session()
    row = build.interrupt(
        session, args=ARGS, state=state, decided_at=timezone.now(), decided_by_name="bob", **fields
    )
    hashes = {"same": row.args_hash, "other": "f" * 64, "": ""}
    begun = {"started_at": timezone.now(), "begun_attempt": 1, "attempts": 1} if ran else {}
    build.call(
        session,
        row.call_id,
        ARGS,
        ran_hash=hashes[ran],
        outcome="completed" if ran else "",
        **begun,
    )
    return row


def test_what_ran_is_what_was_approved():
    row = decided()
    receipt = receipt_of(row)
    assert receipt.equal is True
    assert receipt.ran.args_hash == receipt.decided.args_hash == row.args_hash
    assert receipt.ran.outcome == "completed"


def test_what_ran_and_was_not_approved_is_said():
    assert receipt_of(decided(ran="other")).equal is False


@pytest.mark.parametrize("state", ["rejected", "expired", "canceled", "superseded", "invalidated"])
def test_nothing_ran_for_what_was_not_let_run(state):
    receipt = receipt_of(decided(state=state))
    assert receipt.decided.state == state
    assert receipt.ran is None
    assert receipt.equal is None


def test_while_it_waits_there_is_nothing_but_the_question():
    receipt = receipt_of(build.interrupt(build.session()))
    assert (receipt.decided, receipt.ran, receipt.equal) == (None, None, None)


def test_every_vote_is_named_with_whom_it_was_for():
    row = decided(policy={"approve_n": 2, "version": 7})
    for name, behalf in (("ann", ""), ("bob", "carl")):
        Vote.objects.create(
            interrupt=row,
            revision=1,
            verdict="approve",
            person=build.person(name),
            person_name=name,
            on_behalf_of_name=behalf,
            at=timezone.now(),
        )
    receipt = receipt_of(row)
    assert [(said.by, said.on_behalf_of) for said in receipt.decided.votes] == [
        ("ann", ""),
        ("bob", "carl"),
    ]
    assert (receipt.policy.version, receipt.policy.approve_n) == (7, 2)


def test_one_decision_counts_as_the_only_vote():
    row = decided()
    bob, carl = build.person("bob"), build.person("carl")
    Decision.objects.create(
        request_id="r-1", interrupt=row, actor=bob, on_behalf_of=carl, verdict="approve",
        revision=1, args_hash=row.args_hash, reason="Fine", state="delivered",
    )  # fmt: skip
    (said,) = receipt_of(row).decided.votes
    assert (said.by, said.on_behalf_of, said.reason) == ("bob", "carl", "Fine")


def test_a_receipt_is_plain_json():
    plain = json.loads(json.dumps(receipt_of(decided()).as_json()))
    assert plain["equal"] is True
    assert plain["asked"]["tool"] == "shop__issue_refund"


def test_the_decided_approval_and_the_step_of_the_session_show_it(client):
    client.force_login(build.person("ann", *build.LOOK))
    row = decided()
    build.step(row.session, "CallSingleAttemptTool-1", 5, call_id=row.call_id, tool=row.tool)
    for address in (
        "/approvals/i-1/",
        f"/sessions/{row.session_id}/steps/CallSingleAttemptTool-1/",
    ):
        page = client.get(address).content.decode()
        assert "What ran is what was approved" in page
        assert row.args_hash in page


def test_who_may_not_see_approvals_sees_no_receipt_in_the_session(client):
    client.force_login(build.person("vic", "view_session"))
    row = decided()
    build.step(row.session, "CallSingleAttemptTool-1", 5, call_id=row.call_id, tool=row.tool)
    page = client.get(f"/sessions/{row.session_id}/steps/CallSingleAttemptTool-1/").content.decode()
    assert "Receipt" not in page
