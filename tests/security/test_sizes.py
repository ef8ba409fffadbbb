"""What one person or one tool sends is bounded, so that it cannot end a session or crowd it out."""

import json
from dataclasses import asdict

import pytest

from sessions_app.flow import rules
from sessions_app.flow.state import CallToolInput, CarriedState, Limits, StepContext, ToolCallPlan
from sessions_app.flow.terms import Actor, UserMessage
from sessions_app.llm.stream import ModelReply, RequestedCall
from sessions_app.steps.call_tool import Begun, CallTool
from sessions_app.steps.requests import judge_all
from sessions_app.stream.sizes import fitted
from sessions_app.tools.definitions import ToolResult
from sessions_app.tools.mcp import ConnectionSpec, ToolDef, ToolRaised

#: The engine takes no larger payload; a run whose state is larger could never go on as a new one.
ENGINE_LIMIT = 2 * 1024 * 1024
ANN = Actor(1, "ann")


@pytest.mark.parametrize("letter", ["m", "é", "\x01", '"'])
def test_a_queue_that_is_full_still_fits_into_the_next_run(letter):
    text = letter * (Limits().message_bytes // len(letter.encode()))
    queue: list[UserMessage] = []
    while rules.queue_has_room(queue, text, Limits().queue_bytes):
        queue.append(UserMessage(f"m-{len(queue)}", text, ANN))
        assert len(queue) < 1000
    assert queue, "one message of the allowed length always fits"
    carried = CarriedState(1, 1, {}, 1, queue, {}, "", "")
    state = json.dumps(asdict(carried), ensure_ascii=False).encode()
    assert len(state) < ENGINE_LIMIT - 512 * 1024


class Answering:
    """A tool pool whose every call answers with ``text``, of which it has cut the end."""

    def __init__(self, text: str) -> None:
        self.text = text

    async def call_tool(self, *given):
        return ToolResult(text=self.text, truncated=True)


class Raising:
    """A tool pool whose every call fails in very many words."""

    async def call_tool(self, *given):
        raise ToolRaised("E" * (2 * 1024 * 1024))


async def test_a_tools_own_error_is_cut_for_the_model_like_any_result(settings):
    result, whole = await called(Raising())
    assert result.outcome == "failed"
    assert len(result.words) < settings.DEXWEB_LIMIT_RESULT + 200
    assert len(whole) == 2 * 1024 * 1024


async def called(pool):
    plan = ToolCallPlan("c-1", "shop__look", "read", "", 60.0)
    context = StepContext("refund-desk-1", "CallTool-1", 1, 1)
    given = CallToolInput(context, "refund-desk", plan, None, last_attempt=True)
    return await CallTool(pool)._call(given, Begun(ConnectionSpec("shop", "stdio", ("shop",)), {}))


async def test_of_a_result_the_model_reads_the_start_and_people_are_told_what_is_not_kept(settings):
    settings.DEXWEB_LIMIT_RESULT, settings.DEXWEB_LIMIT_RESULT_KEPT = 1024, 4096
    result, whole = await called(Answering("R" * 10_000))
    assert result.words.startswith("R" * 1024 + "\n[Cut here:")
    assert whole.startswith("R" * 4096 + "\n[Cut here: only the first 4,096 bytes are kept.]")


def test_arguments_that_are_too_large_are_refused_in_words_and_one_call_too_many_is_left_out():
    huge = json.dumps({"note": "x" * (64 * 1024)})
    calls = tuple(RequestedCall(f"c-{n}", "shop__look", huge if n == 0 else "{}") for n in range(4))
    reply = ModelReply("", "", calls, "", "demo", 1, 1, None, None)
    judged = judge_all(reply, [ToolDef("shop__look", "", {"type": "object"})], most=3)
    assert judged[0] == (None, "The arguments are larger than 64 KiB. It did not run.")
    assert [error for _, error in judged[1:3]] == ["", ""]
    assert "Only 3 calls may run in parallel" in judged[3][1]


@pytest.mark.parametrize(
    "payload",
    [
        {"message_id": "m-1", "text": "é" * 32 * 1024},
        {"calls": [{"tool": "t" * 50, "args_preview": "a" * 200} for _ in range(2000)]},
        {"patch": {"settings": {f"name-{n}": ["v" * 90] for n in range(3000)}}},
    ],
)
def test_an_event_that_would_be_too_large_is_cut_and_says_so(payload):
    cut = fitted(payload)
    assert cut["cut"] is True
    assert len(json.dumps(cut)) <= 100 * 1024
    assert set(payload) < set(cut)
    assert fitted({"text": "short"}) == {"text": "short"}
