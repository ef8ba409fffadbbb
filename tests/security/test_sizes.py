"""What one person or one tool sends is bounded, so that it cannot end a session or crowd it out."""

import json
from dataclasses import asdict

import pytest

from sessions_app.flow import rules
from sessions_app.flow.state import CallToolInput, CarriedState, Limits, StepContext, ToolCallPlan
from sessions_app.flow.terms import Actor, UserMessage
from sessions_app.steps.call_tool import RESULT_BYTES_FOR_MODEL, Begun, CallTool
from sessions_app.tools.mcp import ConnectionSpec, ToolRaised

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


class Raising:
    """A tool pool whose every call fails in very many words."""

    async def call_tool(self, *given):
        raise ToolRaised("E" * (2 * 1024 * 1024))


async def test_a_tools_own_error_is_cut_for_the_model_like_any_result():
    plan = ToolCallPlan("c-1", "shop__look", "read", "", 60.0)
    context = StepContext("refund-desk-1", "CallTool-1", 1, 1)
    given = CallToolInput(context, "refund-desk", plan, None, last_attempt=True)
    begun = Begun(ConnectionSpec("shop", "stdio", ("shop",)), {})
    result, whole = await CallTool(Raising())._call(given, begun)
    assert result.outcome == "failed"
    assert len(result.words) < RESULT_BYTES_FOR_MODEL + 200
    assert len(whole) == 2 * 1024 * 1024
