"""Four eyes count everybody who had a say in what the agent asks, on the real engine."""

import uuid
from typing import Any

import pytest
from django.contrib.auth.models import User

from approvals_app.models import Interrupt
from approvals_app.rules import may_decide
from sessions_app import actions
from sessions_app.models import Session
from tests.live.conftest import Live, until
from tests.sessions_app.api import build

REFUND = {"order_id": "A-1042", "amount": 20, "currency": "EUR", "reason": "late"}
HOW_MUCH = {"tool": "ask_user", "args": {"questions": [{"question": "How much?"}]}}
ASKS = {"calls": [{"tool": "shop__issue_refund", "args": REFUND}]}


@pytest.fixture
def people(live: Live, standing_worker: None) -> list[User]:
    return [live.person(name, "refunds.approve") for name in ("ann", "bob", "cy", "dora")]


def allowed(people: list[User], asked: Interrupt) -> list[str]:
    """Who may decide; the list of each says the same as the rule."""
    may = [user for user in people if may_decide(user, asked)]
    listed = [u for u in people if Interrupt.objects.decidable_by(u).filter(pk=asked.pk).exists()]
    assert may == listed
    return [user.username for user in may]


def answer(user: User, asked: Interrupt) -> None:
    key = str(uuid.uuid4())
    actions.answer_question(user, asked.pk, revision=1, answers=[["20 EUR"]], request_id=key)


def desk(live: Live, script: list[dict[str, Any]], **more: Any) -> None:
    live.agent(script, pool="standing", approval={"four_eyes": True}, more=more)


def approval(live: Live, session: Session) -> Interrupt:
    rows = session.interrupts.filter(kind="approval", state="pending")
    found: Interrupt = until(rows.first, live.state(session))
    return found


def test_who_answered_the_agent_or_changed_its_settings_does_not_approve_what_it_then_asks(
    live: Live, people: list[User]
) -> None:
    ann, bob, cy, _ = people
    desk(live, [{"calls": [HOW_MUCH]}, ASKS])
    session = live.start(ann)
    question = live.ask(session)
    settings = {"revision": 0, "patch": {"instructions": "Ask.", "settings": {"temperature": 0.2}}}
    changed = build.client_of(cy).patch(
        f"/api/v1/sessions/{session.pk}/settings/", settings, format="json"
    )
    assert changed.status_code == 202
    answer(bob, question)
    assert allowed(people, approval(live, session)) == ["dora"]


def test_who_led_a_sub_agent_does_not_approve_what_is_made_of_its_answer(
    live: Live, people: list[User]
) -> None:
    ann, bob, *_ = people
    live.agent([{"calls": [HOW_MUCH]}, {"text": "20 EUR."}], name="helper", pool="standing")
    asks = {"calls": [{"tool": "delegate", "args": {"agent": "helper", "task": "How much?"}}]}
    desk(live, [asks, ASKS], delegates=["helper"])
    session = live.start(ann)
    answer(bob, live.ask(until(lambda: session.children.first())))
    assert allowed(people, approval(live, session)) == ["cy", "dora"]
