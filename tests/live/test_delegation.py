"""An agent delegates to another one, on the real engine."""

import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from django.contrib.auth.models import User

from approvals_app.rules import may_decide
from dexweb.engine.errors import NoWorker
from sessions_app import actions
from sessions_app.models import Agent, Session, ToolCall
from tests.live.conftest import Live, assert_stream_is_whole, until

EMAIL = {"to": "ann@example.com", "subject": "Late", "body": "Sorry."}
REFUND = {"order_id": "A-1042", "amount": 20, "currency": "EUR", "reason": "late"}
ANSWER = [{"text": "It came late."}]
ASKS = [{"calls": [{"tool": "shop__issue_refund", "args": REFUND}]}, {"text": "Refunded."}]
WAITS = [{"calls": [{"tool": "wait_for", "args": {"duration": "2h"}}]}, {"text": "Waited."}]


def key() -> str:
    return str(uuid.uuid4())


def gives(*tasks: tuple[str, str]) -> list[dict[str, Any]]:
    """A script that delegates all of ``tasks``, (agent, task), at once, and then says a word."""
    asked = [{"tool": "delegate", "args": {"agent": name, "task": task}} for name, task in tasks]
    return [{"calls": asked}, {"text": "Thank you."}]


@pytest.fixture
def ann(live: Live, standing_worker: None) -> User:
    return live.person("ann", "refunds.approve")


def agents(
    live: Live,
    helper: list[dict[str, Any]],
    script: list[dict[str, Any]] | None = None,
    pool: str = "standing",
    **more: Any,
) -> None:
    """A desk that may delegate to a helper, which plays the script of that name."""
    live.agent(helper, name="helper", pool=pool)
    live.agent(
        script or gives(("helper", "Look at A-1042.")),
        pool=pool,
        more={"delegates": ["helper"], **more},
    )


def child_of(live: Live, session: Session, **of: Any) -> Session:
    child: Session = until(lambda: session.children.filter(**of).first(), live.state(session))
    return child


def waiting(live: Live, session: Session) -> Session:
    """The session once it waits for a timer."""
    timers = session.steps.filter(type="DurableWait", status="waiting")
    until(timers.exists, live.state(session))
    return session


def delegation(session: Session) -> ToolCall:
    return session.calls.get(tool="delegate")


def closed(session: Session) -> Session:
    def gone() -> bool:
        session.refresh_from_db()
        return not session.open

    until(gone, f"{session.pk} to close")
    return session


def test_the_answer_of_a_child_session_is_the_result_of_the_call_and_both_are_linked(
    live: Live, ann: User
) -> None:
    agents(live, ANSWER)
    session = live.idle(live.start(ann))
    call, child = delegation(session), session.children.get()
    assert (call.outcome, call.result, call.child) == ("completed", "It came late.", child)
    assert (child.pk, child.status, child.started_by) == (
        f"{session.pk}-helper-1",
        "completed",
        ann,
    )
    task = child.messages.get()
    assert (task.text, task.author, task.author_name) == ("Look at A-1042.", ann, "desk, for ann")
    step = session.steps.get(call_id=call.call_id)
    assert (step.type, step.status) == ("CallTool", "completed")
    started = session.events.get(type="tool.started").payload
    assert started["child"] == child.pk
    assert child.events.get(type="session.started").payload["parent"] == session.pk
    assert session.steps.filter(type="RunModel").count() == 2
    assert_stream_is_whole(session)
    assert_stream_is_whole(child)


def test_a_child_asks_in_the_inbox_and_whoever_is_behind_it_does_not_count_as_a_second_pair_of_eyes(
    live: Live, ann: User
) -> None:
    bob, carol = live.person("bob", "refunds.approve"), live.person("carol", "refunds.approve")
    live.agent(ASKS, name="helper", pool="standing", approval={"four_eyes": True})
    live.agent(gives(("helper", "Refund it.")), pool="standing", more={"delegates": ["helper"]})
    session = live.start(ann)
    child = child_of(live, session)
    asked = live.ask(child)
    session.refresh_from_db()
    assert (session.phase, child.behind.get()) == ("acting", ann)
    assert [may_decide(user, asked) for user in (ann, bob)] == [False, True]
    child.behind.add(bob)
    assert not may_decide(bob, asked)
    live.decide(carol, asked)
    live.idle(session)
    assert (delegation(session).outcome, delegation(session).result) == ("completed", "Refunded.")
    assert len(live.ledger("refunds")) == 1


@pytest.mark.parametrize("how", ["cancel_turn", "stop"])
def test_canceling_reaches_a_child_of_a_child_and_each_says_how_it_ended(
    live: Live, ann: User, how: str
) -> None:
    live.agent(WAITS, name="deep", pool="standing")
    agents(live, gives(("deep", "Wait.")))
    Agent.objects.filter(name="helper").update(delegates=["deep"])
    session = live.start(ann)
    child = child_of(live, session)
    grandchild = child_of(live, child)
    waiting(live, grandchild)
    if how == "stop":
        live.stop(ann, session)
        assert closed(session).status == "canceled"
    else:
        actions.cancel_turn(ann, session.pk, "Not needed.", key())
        live.idle(session)
    for one, above in ((child, session), (grandchild, child)):
        one.refresh_from_db()
        assert (one.status, one.turns.get().state) == ("canceled", "canceled")
        call = delegation(above)
        assert call.outcome == "canceled"
        assert one.pk in call.words
        assert above.steps.get(call_id=call.call_id).status == "canceled"
    assert grandchild.calls.get().outcome == "canceled"


def test_terminating_a_session_terminates_what_it_began(live: Live, ann: User) -> None:
    agents(live, WAITS)
    session = live.start(ann)
    child = waiting(live, child_of(live, session))
    actions.stop(ann, session.pk, "terminate", "Enough.", key())
    child.refresh_from_db()
    assert (child.status, child.calls.get().outcome) == ("terminated", "canceled")
    assert delegation(session).outcome == "outcome_unknown"


def test_a_child_that_fails_or_that_people_end_tells_its_parent_how(live: Live, ann: User) -> None:
    def told(helper: list[dict[str, Any]], end: Callable[[str], Any] | None = None) -> ToolCall:
        agents(live, helper)
        session = live.start(ann)
        if end is not None:
            end(waiting(live, child_of(live, session)).pk)
        return delegation(live.idle(session))

    def terminate(child: str) -> None:
        actions.stop(ann, child, "terminate", "Stuck.", key())

    failed = told([{"error": "overloaded"}])
    assert failed.outcome == "failed" and "overloaded" in failed.words
    canceled = told(WAITS, lambda child: actions.cancel_turn(ann, child, "Too slow.", key()))
    assert canceled.outcome == "canceled" and "Too slow." in canceled.words
    did_nothing = told(WAITS, terminate)
    assert did_nothing.outcome == "failed" and "Stuck." in did_nothing.words
    sent = {"calls": [{"tool": "shop__send_email", "args": EMAIL}]}
    had_acted = told([sent, *WAITS], terminate)
    assert had_acted.outcome == "outcome_unknown" and "check" in had_acted.words


def test_what_may_not_be_delegated_fails_in_words_and_begins_nothing(live: Live, ann: User) -> None:
    asked = gives(("helper", "Wait."), ("stranger", "Wait."), ("off", "Wait."))
    agents(live, WAITS, asked)
    live.agent(ANSWER, name="off", pool="standing", more={"enabled": False})
    Agent.objects.filter(name="desk").update(delegates=["helper", "off", "gone"])
    session = live.start(ann)
    until(lambda: session.calls.exclude(outcome="").count() == 2)
    words = list(session.calls.exclude(outcome="").values_list("outcome", "words"))
    assert {outcome for outcome, _ in words} == {"failed"}
    assert any("do not fit" in said for _, said in words)
    assert any("disabled or gone" in said for _, said in words)
    assert session.children.count() == 1


def test_depth_and_number_of_children_are_bounded(live: Live, ann: User) -> None:
    """The ring of two agents ends at the third level; of ten at once, eight begin."""
    agents(live, gives(("desk", "Go on.")))
    Agent.objects.filter(name="helper").update(delegates=["desk"])
    session = live.idle(live.start(ann))
    levels = [session]
    while child := levels[-1].children.first():
        levels.append(child)
    assert len(levels) == 4
    last = delegation(levels[-1])
    assert last.outcome == "failed" and "3 levels deep" in last.words
    agents(live, WAITS, gives(*[("helper", "Wait.")] * 10))
    session = live.start(ann)
    until(lambda: session.calls.exclude(outcome="").count() == 2, live.state(session))
    assert session.children.count() == 8
    refused = session.calls.exclude(outcome="").first()
    assert refused and "as many as may be" in refused.words


def test_a_policy_of_its_exact_name_gates_a_delegation_and_no_pattern_does(
    live: Live, ann: User
) -> None:
    agents(live, ANSWER)
    desk = Agent.objects.get(name="desk")
    desk.tools.create(pattern="*", effect="write")
    desk.tools.create(pattern="delegate", effect="idempotent", permission="refunds.approve")
    session = live.start(ann)
    asked = live.ask(session)
    assert not session.children.exists()
    live.decide(ann, asked)
    live.idle(session)
    assert delegation(session).result == "It came late."
    desk.tools.filter(pattern="delegate").delete()
    session = live.idle(live.start(ann))
    assert delegation(session).result == "It came late."
    assert not session.interrupts.exists()


def test_a_child_outlives_the_worker_that_began_it(live: Live) -> None:
    ann = live.person("ann", "refunds.approve")
    agents(live, ASKS, pool="default")
    worker = live.worker()
    session = live.start(ann)
    asked = live.ask(child_of(live, session))
    worker.kill()
    live.worker()
    # On a slow machine the new worker is not there yet: then it delivers what is kept.
    with suppress(NoWorker):
        live.decide(ann, asked)
    live.idle(session)
    assert delegation(session).result == "Refunded."
    assert len(live.ledger("refunds")) == 1
