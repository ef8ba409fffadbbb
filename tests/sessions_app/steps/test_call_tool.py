"""What is checked once more at the moment a call is to run, and what a refusal there says."""

from dataclasses import asdict
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from approvals_app.models import Decision
from sessions_app.flow.state import (
    Approval,
    CallToolInput,
    ReconcileInput,
    StepContext,
    ToolCallPlan,
)
from sessions_app.flow.terms import Actor, ApprovalPolicy
from sessions_app.models import Connection, Credential
from sessions_app.steps import reports, sources
from sessions_app.steps.call_tool import Begun, begin, reconcile
from tests.sessions_app.api import build

pytestmark = pytest.mark.django_db

ARGS = '{"order_id": "A-1042", "amount": 20}'
TOOL = "shop__issue_refund"


class Desk:
    """A refund that ann has approved, about to run."""

    def __init__(self):
        self.ann = build.person("ann", *build.LOOK, keys=("refunds.approve",))
        self.agent = build.agent()
        self.shop = Connection.objects.create(name="shop", command=["shop"])
        self.agent.connections.add(self.shop)
        self.policy = self.agent.tools.create(pattern=TOOL, permission="refunds.approve")
        self.session = build.session()
        self.interrupt = build.interrupt(
            self.session,
            "i-1",
            ARGS,
            call_id="c-1",
            state="approved",
            decided_by=self.ann,
        )
        self.call = build.call(
            self.session, "c-1", ARGS, tool=TOOL, args_hash=self.interrupt.args_hash
        )
        self.step = build.step(
            self.session, "CallSingleAttemptTool-1", 1, status="scheduled", call_id="c-1"
        )
        Decision.objects.create(
            request_id="r-1",
            interrupt=self.interrupt,
            actor=self.ann,
            verdict="approve",
            revision=1,
            args_hash=self.interrupt.args_hash,
        )
        self.effect = "write"
        self.by_nobody = False
        self.decided_at, self.validity = "", 0.0
        self.ask()

    def ask(self, policy=None):
        """What ann was asked under: ``policy``, else the one in force."""
        asked = policy or sources.approval_policy(sources.agent_named(self.agent.name), TOOL)
        self.interrupt.policy = asdict(asked)
        self.interrupt.save()

    def begin(self, approved=True):
        asked = ApprovalPolicy("refunds.approve", "high", 600.0, "reject")
        hashed = self.interrupt.args_hash
        plan = ToolCallPlan("c-1", TOOL, self.effect, hashed, 60.0, asked if approved else None)
        actor = None if self.by_nobody else Actor(self.ann.pk, "ann")
        approval = Approval(
            "i-1", actor, self.decided_at, "refunds.approve", validity=self.validity
        )
        context = StepContext(self.session.pk, self.step.step_id, 1, 1)
        given = CallToolInput(
            context, self.agent.name, plan, approval if approved else None, last_attempt=True
        )
        answer = begin(given)
        for row in (self.call, self.interrupt, self.step, self.session):
            row.refresh_from_db()
        return answer


@pytest.fixture
def desk():
    return Desk()


def test_an_approved_call_begins(desk):
    answer = desk.begin()
    assert isinstance(answer, Begun)
    assert answer.args == {"order_id": "A-1042", "amount": 20}
    assert desk.call.begun_attempt == 1


def test_arguments_that_are_only_written_differently_are_the_same(desk):
    desk.call.args = '{ "amount":20.0,\n "order_id": "A-1042" }'
    desk.call.save()
    assert isinstance(desk.begin(), Begun)


def test_arguments_that_were_altered_run_nothing_and_ask_nobody(desk):
    desk.call.args = '{"order_id": "A-1042", "amount": 2000}'
    desk.call.save()
    answer = desk.begin()
    assert (answer.outcome, answer.ran, answer.ask_again) == ("invalidated", False, None)
    assert "The arguments are not the ones" in answer.words
    assert (desk.call.outcome, desk.call.begun_attempt) == ("invalidated", 0)
    assert desk.interrupt.state == "invalidated"


def deactivate(desk):
    User.objects.filter(pk=desk.ann.pk).update(is_active=False)


def take_the_key_away(desk):
    desk.ann.groups.clear()


def ask_for_another_key(desk):
    desk.agent.tools.update(permission="refunds.large")


@pytest.mark.parametrize(
    ("change", "named", "key"),
    [
        (deactivate, "ann may not decide this any more", "refunds.approve"),
        (take_the_key_away, "ann may not decide this any more", "refunds.approve"),
        (ask_for_another_key, "asks for the permission refunds.large", "refunds.large"),
    ],
)
def test_what_made_the_approval_valid_is_checked_again_and_named(desk, change, named, key):
    change(desk)
    answer = desk.begin()
    assert answer.outcome == "invalidated"
    assert named in answer.words
    assert "did not run" in answer.words
    assert answer.ask_again.permission == key
    assert (desk.interrupt.state, desk.step.outcome) == ("invalidated", "invalidated")
    assert (desk.call.outcome, desk.call.begun_attempt) == ("", 0)
    [event] = desk.session.events.filter(type="tool.invalidated")
    assert (event.payload["call_id"], event.payload["words"]) == ("c-1", answer.words)


@pytest.mark.parametrize(("asked", "by_now"), [(60.0, None), (0, timedelta(seconds=60))])
def test_an_approval_that_is_too_old_when_the_tool_would_start_is_asked_for_anew(
    desk, asked, by_now
):
    desk.agent.tools.update(validity=by_now)
    desk.validity = asked
    desk.decided_at = (timezone.now() - timedelta(seconds=61)).isoformat()
    answer = desk.begin()
    assert (answer.outcome, answer.ran) == ("invalidated", False)
    assert "more than 60 s ago" in answer.words
    assert answer.ask_again.permission == "refunds.approve"
    assert desk.interrupt.state == "invalidated"


def test_an_attempt_that_was_cut_off_is_never_said_not_to_have_run(desk):
    """The approval is void by the time of the second attempt, but the first may have acted."""
    desk.agent.tools.update(effect="idempotent")
    desk.effect = "idempotent"
    assert isinstance(desk.begin(), Begun)
    take_the_key_away(desk)
    again = desk.begin()
    assert again.outcome == "outcome_unknown"
    assert "ann may not decide this any more" in again.words
    assert "It may have run" in again.words


def test_an_approval_of_another_call_is_none(desk):
    desk.interrupt.args_hash = "0" * 64
    hashed = desk.call.args_hash
    desk.interrupt.save()
    desk.interrupt.args_hash = hashed
    assert "not for this call" in desk.begin().words


def test_a_call_that_needed_nobody_when_asked_for_needs_the_gate_of_now(desk):
    answer = desk.begin(approved=False)
    assert answer.outcome == "invalidated"
    assert "asks for an approval by now" in answer.words
    assert answer.ask_again.permission == "refunds.approve"


def test_a_policy_that_needs_nobody_any_more_does_not_void_an_approval(desk):
    desk.agent.tools.update(needs_approval=False)
    assert isinstance(desk.begin(), Begun)


@pytest.mark.parametrize("what", ["connection", "credential"])
def test_a_tool_that_was_switched_off_meanwhile_does_not_run(desk, what):
    if what == "connection":
        Connection.objects.update(enabled=False)
    else:
        credential = Credential.objects.create(name="shop-key", value="k" * 20, enabled=False)
        Connection.objects.update(credential=credential)
        desk.ask()
    answer = desk.begin()
    assert (answer.outcome, answer.ran) == ("failed", False)
    assert what in answer.words
    assert "disabled" in answer.words


def test_a_write_that_has_begun_is_not_begun_again(desk):
    assert isinstance(desk.begin(), Begun)
    again = desk.begin()
    assert again.outcome == "outcome_unknown"
    assert desk.call.attempts == 1


def test_a_piece_that_comes_after_its_step_has_ended_is_dropped(desk):
    desk.begin()
    context = StepContext(desk.session.pk, desk.step.step_id, 1, 1)
    piece = [("tool.progress", {"call_id": "c-1", "done": 1})]
    reports.live(desk.session, context, piece)
    assert [event.type for event in desk.session.unwritten_events] == ["tool.progress"]
    desk.session.unwritten_events = []

    desk.step.status = "completed"
    desk.step.save()
    reports.live(desk.session, context, piece)
    assert desk.session.unwritten_events == []


def test_an_attempt_that_was_given_up_does_not_begin_beside_the_next_one(desk):
    desk.effect = "idempotent"
    desk.step.attempt = 2
    desk.step.save()
    answer = desk.begin()
    assert (answer.outcome, answer.ran, answer.retryable) == ("failed", False, True)
    assert (desk.call.outcome, desk.call.begun_attempt) == ("", 0)


def test_what_an_earlier_attempt_did_is_unknown_when_the_connection_is_gone_at_the_next(desk):
    desk.policy.effect = desk.effect = "idempotent"
    desk.policy.save()
    desk.call.begun_attempt = 1
    desk.call.save()
    desk.shop.enabled = False
    desk.shop.save()
    answer = desk.begin()
    assert answer.outcome == desk.call.outcome == "outcome_unknown"


@pytest.mark.parametrize(
    ("begun", "canceled", "outcome"),
    [(0, False, "failed"), (1, False, "outcome_unknown"), (1, True, "outcome_unknown")],
)
def test_a_last_attempt_that_never_began_says_nothing_of_one_that_did(
    desk, begun, canceled, outcome
):
    desk.call.begun_attempt = begun
    desk.call.save()
    context = StepContext(desk.session.pk, desk.step.step_id, 3, 1)
    given = ReconcileInput(
        context, "c-1", "idempotent", "its worker died", canceled, last_attempt=True
    )
    assert reconcile(given).outcome == outcome
