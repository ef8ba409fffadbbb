"""An agent asks people with `ask_user` and waits with `wait_until` and `wait_for`, on the real engine."""

import json
import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from approvals_app import holds
from approvals_app.models import AuditEntry, Interrupt
from approvals_app.notify.render import message
from approvals_app.notify.rules import concerns
from dexweb.engine.errors import (
    InterruptAlreadyDecided,
    InvalidArguments,
    NotWaiting,
    QuestionOpen,
    RpcLockConflict,
    StaleInterrupt,
    WrongKind,
)
from sessions_app import actions
from sessions_app.models import Agent, Session, Step
from tests.live.conftest import Live, assert_stream_is_whole, insist, until

COLOUR = {"question": "Which colour?", "choices": ["red", "blue"]}
WHY = {"question": "Why?"}
REFUND = {"order_id": "A-1042", "amount": 20, "currency": "EUR", "reason": "late"}


def calls(*asked: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """A script of one response with these calls, then a word."""
    return [{"calls": [{"tool": tool, "args": args} for tool, args in asked]}, {"text": "Done."}]


def ask(*questions: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return "ask_user", {"questions": list(questions)}


def key() -> str:
    return str(uuid.uuid4())


def answer(
    user: User, asked: Interrupt, *answers: list[str], revision: int = 1, request_id: str = ""
) -> None:
    actions.answer_question(
        user, asked.pk, revision=revision, answers=list(answers), request_id=request_id or key()
    )


def timer(live: Live, session: Session) -> Step:
    """The timer that the session waits for."""
    found: Step = until(
        lambda: session.steps.filter(type="DurableWait", status="waiting").first(),
        f"a timer: {live.state(session)}",
    )
    return found


def outcome(session: Session, tool: str) -> tuple[str, str]:
    call = session.calls.get(tool=tool)
    return call.outcome, call.words or call.result


def told(session: Session, type: str) -> list[dict[str, Any]]:
    return [event.payload for event in session.events.filter(type=type)]


@pytest.fixture
def ann(live: Live, standing_worker: None) -> User:
    return live.person("ann", "refunds.approve")


def begin(live: Live, user: User, *asked: tuple[str, dict[str, Any]]) -> Session:
    live.agent(calls(*asked), pool="standing")
    return live.start(user)


def test_all_questions_are_answered_at_once_and_the_model_reads_who_answered_what(
    live: Live, ann: User
) -> None:
    session = begin(live, ann, ask(COLOUR, WHY))
    asked = live.ask(session)
    session.refresh_from_db()
    assert (asked.kind, asked.due, session.phase) == ("question", None, "waiting_answer")
    assert session.steps.get(type="AwaitAnswer").status == "waiting"
    assert told(session, "question.asked")[0]["questions"][0]["choices"] == ["red", "blue"]
    answer(ann, asked, ["blue"], ["It is calmer."])
    live.idle(session)
    how, words = outcome(session, "ask_user")
    assert (how, json.loads(words)) == (
        "completed",
        {
            "answered_by": "ann",
            "answers": [
                {"question": "Which colour?", "answer": "blue"},
                {"question": "Why?", "answer": "It is calmer."},
            ],
        },
    )
    asked.refresh_from_db()
    assert (asked.state, asked.decided_by, session.waiting) == ("answered", ann, 0)
    assert told(session, "question.answered")[0]["by"] == "ann"
    assert AuditEntry.objects.filter(action="question.answered", actor=ann).count() == 1
    assert_stream_is_whole(session)


def test_an_answer_that_does_not_fit_is_refused_and_the_question_stays_open(
    live: Live, ann: User
) -> None:
    bob = live.person("bob")
    asked = live.ask(begin(live, ann, ask(COLOUR, WHY)))
    for wrong in ([["red"]], [["green"], ["so"]], [["red", "blue"], ["so"]], [["red"], [" "]]):
        with pytest.raises(InvalidArguments):
            answer(ann, asked, *wrong)
    with pytest.raises(StaleInterrupt):
        answer(ann, asked, ["red"], ["so"], revision=2)
    with pytest.raises(WrongKind):
        live.decide(ann, asked)
    holds.hold(bob, asked.pk, request_id=key())
    with pytest.raises(RpcLockConflict):
        answer(ann, asked, ["red"], ["so"])
    answer(bob, asked, ["red"], ["so"])
    with pytest.raises(InterruptAlreadyDecided) as late:
        answer(ann, asked, ["blue"], ["so"])
    assert (late.value.state, late.value.by) == ("answered", "bob")


def test_while_a_question_is_open_no_message_is_taken_and_canceling_the_turn_ends_it(
    live: Live, ann: User
) -> None:
    session = begin(live, ann, ask(COLOUR))
    asked = live.ask(session)
    with pytest.raises(QuestionOpen) as open_question:
        actions.send_message(ann, session.pk, "Blue, please.", key())
    assert open_question.value.interrupt_id == asked.pk
    actions.cancel_turn(ann, session.pk, "", key())
    asked.refresh_from_db()
    assert asked.state == "canceled"
    how, words = outcome(session, "ask_user")
    assert (how, words) == ("canceled", "The turn was canceled before anybody answered.")
    actions.send_message(ann, session.pk, "Another thing.", key())
    live.idle(session, turn=2)


def test_a_wait_ends_by_itself_and_the_model_is_told_until_when(live: Live, ann: User) -> None:
    session = begin(live, ann, ("wait_for", {"duration": "300ms"}))
    live.idle(session)
    how, words = outcome(session, "wait_for")
    moment = told(session, "timer.set")[0]["until"]
    assert (how, words) == ("completed", f"Waited until {moment}.")
    assert "skipped_by" not in told(session, "timer.fired")[0]


def test_a_person_skips_a_wait_and_is_named_and_it_cannot_be_skipped_twice(
    live: Live, ann: User
) -> None:
    moment = timezone.now() + timedelta(days=3)
    session = begin(live, ann, ("wait_until", {"time": moment.isoformat()}))
    step = timer(live, session)
    session.refresh_from_db()
    assert session.phase == "waiting_timer"
    request = key()
    first = actions.skip_wait(ann, session.pk, step.step_id, request)
    assert actions.skip_wait(ann, session.pk, step.step_id, request) == first
    live.idle(session)
    how, words = outcome(session, "wait_until")
    assert how == "completed" and words.startswith("ann skipped the wait after")
    assert told(session, "timer.fired")[0]["skipped_by"] == "ann"
    with pytest.raises(NotWaiting):
        actions.skip_wait(ann, session.pk, step.step_id, key())


def test_arguments_that_no_wait_can_have_fail_in_words_and_nobody_is_asked(
    live: Live, ann: User
) -> None:
    session = begin(
        live,
        ann,
        ask(),
        ask(WHY, WHY, WHY, WHY, WHY),
        ("wait_until", {"time": "2030-01-01T00:00:00"}),
        ("wait_until", {"time": "2999-01-01T00:00:00Z"}),
        ("wait_for", {"duration": "soon"}),
    )
    live.idle(session)
    outcomes = session.calls.order_by("position").values_list("outcome", "words")
    assert [how for how, _ in outcomes] == ["failed"] * 5
    for (_, words), said in zip(
        outcomes, ("questions", "questions", "zone", "at most", "duration"), strict=True
    ):
        assert said in words
    assert not session.interrupts.exists()


def test_what_needs_a_person_most_names_the_phase_while_several_things_wait(
    live: Live, ann: User
) -> None:
    session = begin(
        live,
        ann,
        ("wait_for", {"duration": "2h"}),
        ask(COLOUR),
        ("shop__issue_refund", REFUND),
    )
    until(lambda: session.interrupts.pending().count() == 2, live.state(session))

    def phase() -> str:
        session.refresh_from_db()
        return session.phase

    assert (phase(), session.waiting) == ("waiting_approval", 2)
    live.decide(ann, session.interrupts.get(kind="approval"))
    until(lambda: phase() == "waiting_answer")
    answer(ann, session.interrupts.get(kind="question"), ["red"])
    until(lambda: live.ledger("refunds") and phase() == "waiting_timer")
    actions.skip_wait(ann, session.pk, timer(live, session).step_id, key())
    live.idle(session)
    assert set(session.calls.values_list("outcome", flat=True)) == {"completed"}


def test_a_question_and_a_timer_outlive_the_worker_that_asked(live: Live) -> None:
    ann = live.person("ann")
    live.agent(calls(ask(COLOUR), ("wait_for", {"duration": "2h"})))
    worker = live.worker()
    session = live.start(ann)
    asked = live.ask(session)
    step = timer(live, session)
    worker.kill()
    live.worker()
    insist(lambda key: answer(ann, asked, ["red"], request_id=key))
    insist(lambda key: actions.skip_wait(ann, session.pk, step.step_id, key))
    live.idle(session)
    assert outcome(session, "ask_user")[0] == "completed"


def test_a_built_in_tool_is_left_out_by_its_own_name_and_by_no_pattern(
    live: Live, ann: User
) -> None:
    name = live.agent(calls(ask(COLOUR), ("wait_for", {"duration": "10ms"})), pool="standing")
    agent = Agent.objects.get(name=name)
    agent.tools.create(pattern="wait_*", enabled=False)
    agent.tools.create(pattern="ask_user", enabled=False)
    session = live.start(ann)
    live.idle(session)
    assert outcome(session, "wait_for")[0] == "completed"
    assert outcome(session, "ask_user") == ("failed", "There is no tool ask_user. It did not run.")


def test_over_rest_a_question_is_found_and_answered_and_a_wait_is_skipped(
    live: Live, ann: User, client: Client
) -> None:
    session = begin(live, ann, ask(COLOUR, WHY), ("wait_for", {"duration": "2h"}))
    asked, step = live.ask(session), timer(live, session)
    client.force_login(ann)
    (listed,) = client.get("/api/v1/approvals/?kind=question&mine=true").json()["results"]
    assert (listed["id"], listed["deadline"], listed["answers"]) == (asked.pk, None, None)
    assert [one["question"] for one in listed["questions"]] == ["Which colour?", "Why?"]

    def post(address: str, body: dict[str, Any]) -> Any:
        return client.post(f"/api/v1/{address}", body, content_type="application/json")

    wrong = post(f"approvals/{asked.pk}/answer", {"revision": 1, "answers": ["green", "so"]})
    assert (wrong.status_code, wrong.json()["code"]) == (422, "invalid_arguments")
    right = post(f"approvals/{asked.pk}/answer", {"revision": 1, "answers": ["red", ["so"]]})
    assert (right.status_code, right.json()["state"]) == (200, "answered")
    assert (right.json()["answers"], right.json()["decided_by"]) == ([["red"], ["so"]], "ann")
    skip = f"sessions/{session.pk}/steps/{step.step_id}/skip"
    assert post(skip, {}).status_code == 202
    again = post(skip, {})
    assert (again.status_code, again.json()["code"]) == (409, "not_waiting")


def test_on_its_page_a_refused_answer_keeps_what_was_typed_and_then_says_who_answered(
    live: Live, ann: User, client: Client
) -> None:
    asked = live.ask(begin(live, ann, ask(COLOUR, WHY)))
    client.force_login(ann)
    inbox = client.get("/approvals/").content.decode()
    assert "Your answer" in inbox and "Which colour? · Why?" in inbox and "data-pick>" not in inbox
    address = f"/approvals/{asked.pk}/answer/"
    form = {"revision": "1", "request_id": key(), "text-1": "It is calmer."}
    refused = client.post(address, form, headers={"HX-Request": "true"})
    assert refused.status_code == 422
    assert "Choose an answer." in refused.content.decode()
    assert "It is calmer.</textarea>" in refused.content.decode()
    taken = client.post(address, {**form, "choice-0": "blue"}, headers={"HX-Request": "true"})
    assert taken.status_code == 200
    assert "<b>ann</b> answered." in taken.content.decode()
    late = client.post(address, {**form, "request_id": key()}, headers={"HX-Request": "true"})
    assert late.status_code == 409 and "It is calmer." in late.content.decode()


def test_whose_session_it_is_hears_of_the_question_and_nobody_else(live: Live, ann: User) -> None:
    bob = live.person("bob", "refunds.approve")
    news = live.ask(begin(live, ann, ask(COLOUR))).notifications.get()
    assert (news.event, concerns(news, ann), concerns(news, bob)) == ("ask", True, False)
    assert message(news).headline == "desk asks you a question"
