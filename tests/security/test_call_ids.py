"""A call has one id for the engine, the rows and the model, whatever the provider sent."""

import pytest
from pydantic_ai.messages import ModelResponse, ToolCallPart

from sessions_app.llm.stream import LONGEST_CALL_ID, _with_own_call_ids


@pytest.mark.parametrize("sent", ["", "x" * 200, "a\0b", "\ud800", "line\nline", "same"])
def test_two_calls_with_an_id_that_cannot_be_kept_get_ids_of_their_own(sent):
    parts = [ToolCallPart("shop__look", "{}", tool_call_id=sent) for _ in range(2)]
    reply = _with_own_call_ids(ModelResponse(parts=parts), [])
    ids = [part.tool_call_id for part in reply.parts]
    assert len(set(ids)) == 2
    assert all(len(call_id) <= LONGEST_CALL_ID and call_id.isprintable() for call_id in ids)
