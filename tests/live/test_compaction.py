"""A conversation that the model could no longer read whole is summarised, and loses no row by it."""

import uuid

import pytest

from sessions_app import actions
from sessions_app.models import Session
from sessions_app.steps.reading import conversation
from tests.live.conftest import Live, assert_stream_is_whole, until

pytestmark = pytest.mark.usefixtures("standing_worker")

WINDOW = 1_500
LONG = "All about order A-1042. " * 20
CALL = {"tool": "shop__lookup_order", "args": {"order_id": "A-1042"}}


def talk(live: Live, session: Session, turns: int, text: str = LONG) -> Session:
    ann = session.started_by
    for number in range(session.turn + 1, session.turn + 1 + turns):
        actions.send_message(ann, session.pk, f"Message {number}. {text}", str(uuid.uuid4()))
        live.idle(session, turn=number)
    return session


def desk(live: Live, script: list, window: int = WINDOW) -> None:
    settings = {"script": script, "word_delay": 0, "context_window": window}
    live.agent(script, pool="standing", more={"settings": settings})


def test_older_turns_are_summarised_before_the_model_is_asked_again(live: Live) -> None:
    desk(live, [{"text": "Noted."}, {"repeat": True}])
    session = live.idle(live.start(live.person("ann"), message=f"Message 1. {LONG}"))
    talk(live, session, 7)

    summary = session.summaries.first()
    assert summary.covers == f"turns 1–{summary.last_turn}"
    assert summary.tokens_after < summary.tokens_before
    step = session.steps.get(step_id=summary.step_id)
    assert (step.type, step.status) == ("CompactContext", "completed")
    after = session.steps.filter(causes=[step.step_id], type="RunModel").get()
    assert after.status == "completed" and after.turn == step.turn
    event = session.events.get(type="session.compacted", step_id=step.step_id)
    assert event.payload["covers"] == summary.covers
    assert event.payload["tokens_after"] == summary.tokens_after

    read = str(conversation(session))
    newest = session.summaries.last()
    assert f"Summary of {newest.covers}" in read
    assert "Message 8." in read and f"Message {newest.last_turn}. {LONG}" not in read
    # Nothing is gone but from what the model reads.
    assert session.messages.count() == 8
    texts = session.steps.filter(type="RunModel").values_list("text", flat=True)
    assert list(texts) == ["Noted."] * 8
    assert session.context_tokens < WINDOW
    assert_stream_is_whole(session)


def test_a_long_turn_is_shortened_without_parting_a_call_from_its_result(live: Live) -> None:
    desk(live, [*[{"text": LONG, "calls": [CALL]}] * 6, {"text": "Done."}])
    session = live.idle(live.start(live.person("ann"), message="What of order A-1042?"))

    assert session.turns.get().state == "completed"
    summary = session.summaries.last()
    assert summary.covers == "the beginning of turn 1"
    read = conversation(session)
    parts = [part for message in read for part in message.parts]
    asked = [part.tool_call_id for part in parts if part.part_kind == "tool-call"]
    answered = [part.tool_call_id for part in parts if part.part_kind == "tool-return"]
    assert asked == answered and 0 < len(asked) < 6
    assert "What of order A-1042?" in str(read)


def test_a_context_that_cannot_be_shortened_is_said_and_the_turn_goes_on(live: Live) -> None:
    desk(live, [{"text": "I read it all the same."}], window=100)
    session = live.idle(live.start(live.person("ann"), message=LONG))

    step = session.steps.get(type="CompactContext")
    assert step.status == "failed"
    assert "the turn goes on" in step.detail.lower()
    assert session.steps.get(type="RunModel").text == "I read it all the same."
    assert session.turns.get().state == "completed"
    assert not session.summaries.exists()
    assert until(lambda: session.events.filter(type="model.completed").count() == 1)
