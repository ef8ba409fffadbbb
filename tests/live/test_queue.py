"""Messages that wait: edited, withdrawn, and steered into the turn that runs."""

import json
import uuid
from typing import Any

import pytest

from dexweb.engine.errors import (
    BlankMessage,
    InvalidSettings,
    MessageNotFound,
    StaleSettings,
)
from sessions_app import actions
from sessions_app.models import Session
from sessions_app.steps.reading import conversation
from tests.live.conftest import Live, assert_stream_is_whole, until

pytestmark = pytest.mark.usefixtures("standing_worker")
REFUND = {"order_id": "A-1042", "amount": 20, "currency": "EUR", "reason": "late"}
ASKS = {"calls": [{"tool": "shop__issue_refund", "args": REFUND}]}


def rid() -> str:
    return str(uuid.uuid4())


def waiting(live: Live, *then: dict[str, Any]) -> tuple[Any, Session]:
    """A person, and a session whose first turn waits for an approval."""
    user = live.person("ann", "refunds.approve")
    agent = live.agent([ASKS, *then], pool="standing")
    session = live.start(user, agent, "First.")
    live.ask(session)
    return user, session


def texts(session: Session) -> list[str]:
    return list(session.messages.order_by("id").values_list("text", flat=True))


def test_a_waiting_message_is_edited_and_the_agent_reads_only_what_it_was_edited_to(
    live: Live,
) -> None:
    user, session = waiting(live, {"text": "Done."}, {"text": "Second done."})
    sent = actions.send_message(user, session.pk, "Secnod.", rid())
    answer = actions.edit_queued(user, session.pk, sent.id, "Second.", rid())
    assert answer.state == "edited"
    message = session.messages.get(message_id=sent.id)
    assert (message.text, message.edited_by_name) == ("Second.", "ann")
    live.decide(user, live.ask(session))
    live.idle(session, turn=2)
    assert "Second." in str(conversation(session)) and "Secnod." not in str(conversation(session))


def test_a_blank_edit_is_refused_and_the_message_stays_as_it_was(live: Live) -> None:
    user, session = waiting(live)
    sent = actions.send_message(user, session.pk, "Second.", rid())
    with pytest.raises(BlankMessage):
        actions.edit_queued(user, session.pk, sent.id, "  ", rid())
    assert texts(session) == ["First.", "Second."]


def test_a_withdrawn_message_is_never_read_and_its_neighbour_is(live: Live) -> None:
    user, session = waiting(live, {"text": "Done."}, {"text": "Third done."})
    second = actions.send_message(user, session.pk, "Second.", rid())
    actions.send_message(user, session.pk, "Third.", rid())
    request = rid()
    first = actions.delete_queued(user, session.pk, second.id, request)
    again = actions.delete_queued(user, session.pk, second.id, request)
    assert first == again
    live.decide(user, live.ask(session))
    live.idle(session, turn=2)
    assert session.turn == 2
    read = str(conversation(session))
    assert "Third." in read and "Second." not in read
    with pytest.raises(MessageNotFound):
        actions.delete_queued(user, session.pk, second.id, rid())


def test_a_message_that_the_agent_has_taken_can_be_neither_edited_nor_withdrawn(live: Live) -> None:
    user, session = waiting(live)
    taken = session.messages.get()
    with pytest.raises(MessageNotFound):
        actions.edit_queued(user, session.pk, taken.message_id, "Other.", rid())
    with pytest.raises(MessageNotFound):
        actions.delete_queued(user, session.pk, taken.message_id, rid())
    assert texts(session) == ["First."]


def test_steering_settles_what_waits_for_people_and_is_read_before_the_next_model_call(
    live: Live,
) -> None:
    user, session = waiting(live, {"text": "As you say."})
    approval = live.ask(session)
    sent = actions.send_message(user, session.pk, "Stop, it was delivered.", rid())
    assert actions.steer(user, session.pk, sent.id, rid()).state == "steered"
    live.idle(session)
    approval.refresh_from_db()
    assert (approval.state, approval.decided_by_name) == ("superseded", "")
    call = live.call(session, "issue_refund")
    assert call.outcome == "canceled" and "did not run" in call.words
    assert live.ledger("refunds") == []
    message = session.messages.get(message_id=sent.id)
    assert (message.state, message.turn, message.before_step) == ("consumed", 1, "RunModel-2")
    said = [type(part).__name__ for one in conversation(session) for part in one.parts]
    assert said == [
        "UserPromptPart",
        "ToolCallPart",
        "ToolReturnPart",
        "UserPromptPart",
        "TextPart",
    ]
    assert session.turn == 1
    assert_stream_is_whole(session)


def test_steering_ends_a_durable_wait_so_that_the_agent_reads_it_now(live: Live) -> None:
    user = live.person("ann")
    waits = {"calls": [{"tool": "wait_for", "args": {"duration": "2h"}}]}
    session = live.start(user, live.agent([waits, {"text": "Right."}], pool="standing"), "First.")
    until(lambda: session.steps.filter(type="DurableWait", status="waiting").exists(), "a wait")
    sent = actions.send_message(user, session.pk, "Go on now.", rid())
    actions.steer(user, session.pk, sent.id, rid())
    live.idle(session)
    assert "ann skipped the wait" in session.calls.get().words
    assert session.messages.get(message_id=sent.id).before_step == "RunModel-2"


def test_what_is_steered_in_while_the_last_answer_is_written_is_answered_in_the_same_turn(
    live: Live,
) -> None:
    user = live.person("ann")
    agent = live.agent([{"text": "One.", "delay": "1s"}, {"text": "Two."}], pool="standing")
    session = live.start(user, agent, "First.")
    until(lambda: session.steps.filter(type="RunModel", status="active").exists(), "a model call")
    sent = actions.send_message(user, session.pk, "And this.", rid())
    actions.steer(user, session.pk, sent.id, rid())
    live.idle(session)
    assert session.turn == 1
    assert session.steps.filter(type="RunModel").count() == 2


def test_settings_count_from_the_next_turn_on_and_a_turn_keeps_those_it_began_with(
    live: Live,
) -> None:
    user, session = waiting(live, {"text": "Done."})
    script = [{"text": "By the new script."}]
    answer = actions.update_settings(
        user, session.pk, {"settings": {"script": script}, "instructions": "Be brief."}, 0, rid()
    )
    assert answer.state == "1"
    live.decide(user, live.ask(session))
    live.idle(session)
    actions.send_message(user, session.pk, "Second.", rid())
    live.idle(session, turn=2)
    first, second = session.turns.order_by("number")
    assert first.settings["instructions"] != "Be brief."
    assert second.settings["instructions"] == "Be brief."
    assert second.settings["settings"]["script"] == script


def test_settings_made_on_an_older_revision_are_refused_and_say_the_newer_one(live: Live) -> None:
    user, session = waiting(live)
    actions.update_settings(user, session.pk, {"instructions": "Mine."}, 0, rid())
    with pytest.raises(StaleSettings) as refused:
        actions.update_settings(user, session.pk, {"instructions": "Theirs."}, 0, rid())
    assert refused.value.revision == 1
    session.refresh_from_db()
    assert session.settings == {"instructions": "Mine."}
    actions.update_settings(user, session.pk, {"instructions": None}, 1, rid())
    session.refresh_from_db()
    assert session.settings == {}


@pytest.mark.parametrize(
    "patch",
    [{}, {"model": "openai:gpt-5.2"}, {"pool": "other"}, {"settings": 1}, {"instructions": 7}],
    ids=json.dumps,
)
def test_settings_that_cannot_be_used_are_refused_in_words(
    live: Live, patch: dict[str, Any]
) -> None:
    user, session = waiting(live)
    with pytest.raises(InvalidSettings) as refused:
        actions.update_settings(user, session.pk, patch, 0, rid())
    assert refused.value.errors
    session.refresh_from_db()
    assert session.settings_revision == 0
