import json
import time

import pytest

from sessions_app.llm.factory import ModelSpec, build_model
from sessions_app.llm.failures import ModelFailed
from sessions_app.llm.history import assistant_message, tool_result, user_message
from sessions_app.llm.script_model import ENDED, validate_script
from tests.sessions_app.llm.conftest import ask

CALL = {"tool": "shop__lookup_order", "args": {"order_id": "A-1", "n": 12345678901234567890123}}


def scripted(script, **settings):
    settings = {"word_delay": 0, "script": script} | settings
    return build_model(ModelSpec("demo:script", settings=settings))


async def play(script, messages: int) -> list[str]:
    """What a script says to so many messages, each turn played to its end."""
    said, history = [], []
    for number in range(messages):
        history.append(user_message(f"message {number}"))
        for _ in range(10):
            reply = await ask(scripted(script), history)
            said.append(reply.text or ",".join(call.tool for call in reply.calls))
            history.append(assistant_message(reply.response_json))
            if not reply.calls:
                break
            history += [tool_result(c.call_id, c.tool, "{}", "completed") for c in reply.calls]
        else:
            raise AssertionError("a turn that never ends")
    return said


async def test_entries_play_one_for_each_model_call_until_the_script_has_ended():
    script = [{"text": "One."}, {"calls": [CALL]}, {"text": "Two."}]
    assert await play(script, 3) == ["One.", "shop__lookup_order", "Two.", ENDED]


@pytest.mark.parametrize(
    "script",
    [
        [{"calls": [CALL]}, {"text": "Done.", "repeat": True}],
        [{"calls": [CALL], "repeat": True}, {"text": "Done."}],
        [{"calls": [CALL]}, {"text": "Done."}, {"repeat": True}],
    ],
)
async def test_a_repeating_script_starts_over_for_the_next_message(script):
    assert await play(script, 2) == ["shop__lookup_order", "Done."] * 2


async def test_a_repeating_script_of_calls_only_still_ends_its_turns():
    assert await play([{"calls": [CALL], "repeat": True}], 2) == ["shop__lookup_order", ENDED] * 2


async def test_text_and_calls_of_one_entry_stream_word_by_word(listener):
    model = scripted([{"text": "Looking at it now.", "calls": [CALL, CALL]}])
    reply = await ask(model, [user_message("Go")], listener=listener)
    assert listener.of("text") == ["Looking ", "at ", "it ", "now."]
    assert [json.loads(call.args_json) for call in reply.calls] == [CALL["args"]] * 2
    assert reply.calls[0].call_id != reply.calls[1].call_id
    assert reply.output_tokens > 0
    assert reply.cost is None


@pytest.mark.parametrize(
    ("status", "retryable"), [(None, True), (429, True), (500, True), (400, False), (401, False)]
)
async def test_an_error_entry_fails_the_call_and_every_attempt_of_it(status, retryable):
    entry = {"error": "overloaded"} | ({"status": status} if status else {})
    for _attempt in range(2):
        with pytest.raises(ModelFailed) as caught:
            await ask(scripted([entry, {"text": "Better."}]), [user_message("Go")])
        assert "overloaded" in caught.value.message
        assert caught.value.status == (status or 503)
        assert caught.value.retryable is retryable


async def test_the_index_of_the_model_call_counts_failed_ones_too():
    script = [{"error": "overloaded"}, {"text": "Better."}]
    reply = await ask(scripted(script, model_call_index=1), [user_message("Go")])
    assert reply.text == "Better."


async def test_a_very_long_text_and_very_long_arguments_come_whole_and_soon(listener):
    text, note = " ".join(["word"] * 5000), "z" * 70_000
    call = {"tool": "shop__lookup_order", "args": {"note": note}}
    model = scripted([{"text": text, "calls": [call]}], word_delay="1ms")
    reply = await ask(model, [user_message("Go")], listener=listener)
    assert (reply.text, json.loads(reply.calls[0].args_json)) == (text, {"note": note})
    assert len(listener.pieces) <= 200


async def test_a_delay_comes_before_the_first_word():
    started = time.monotonic()
    await ask(scripted([{"text": "Late.", "delay": "200ms"}]), [user_message("Go")])
    assert time.monotonic() - started >= 0.2


async def test_input_tokens_grow_with_the_conversation():
    short = await ask(scripted([{"text": "Hi."}]), [user_message("Go")])
    long = await ask(scripted([{"text": "Hi."}]), [user_message("Go " * 4000)])
    assert long.input_tokens > short.input_tokens + 2500


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (None, "list of entries"),
        ("text", "list of entries"),
        ([], "at least one entry"),
        ([{"repeat": True}], "at least one entry"),
        (["hello"], "Entry 1: write a mapping"),
        ([{"text": "a"}, {}], "Entry 2: it needs text, calls or error"),
        ([{"txt": "a"}], "txt means nothing here"),
        ([{"text": ""}], "not empty"),
        ([{"text": 5}], "must be a text"),
        ([{"text": "a", "error": "b"}], "stands alone"),
        ([{"text": "a", "delay": "soon"}], "not a duration"),
        ([{"text": "a", "repeat": "yes"}], "true or false"),
        ([{"text": "a", "status": 500}], "status belongs to an error"),
        ([{"error": "a", "status": 200}], "400 to 599"),
        ([{"calls": []}], "at least one call"),
        ([{"calls": [{"args": {}}]}], "needs a tool"),
        ([{"calls": [{"tool": "t", "args": []}]}], "must be a mapping"),
        ([{"calls": [{"tool": "t", "arg": {}}]}], "only tool and args"),
    ],
)
def test_a_faulty_script_says_what_is_wrong_in_words(script, words):
    assert any(words in fault for fault in validate_script(script))


def test_a_good_script_has_no_faults():
    script = [
        {"text": "a", "calls": [{"tool": "t"}], "delay": 2},
        {"error": "x", "status": 429},
        {"repeat": True},
    ]
    assert validate_script(script) == []
