"""Builds the message list a model is called with, from plain values."""

from collections.abc import Iterable
from dataclasses import replace

from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    ToolReturnPart,
    UserPromptPart,
)

#: Where our outcome of a tool call rides in a message; providers are not sent it.
OUTCOME = "dexweb_outcome"

#: How a summary of older messages begins.
SUMMARY = "Summary of "

_PYDANTIC_OUTCOMES = {"completed": "success", "rejected": "denied", "expired": "denied"}


def user_message(text: str) -> ModelRequest:
    """What a person said."""
    return ModelRequest(parts=[UserPromptPart(content=text)])


def summary_message(covers: str, text: str) -> ModelRequest:
    """What stands in place of the messages that it covers, like turns 1–12."""
    return user_message(
        f"{SUMMARY}{covers} of this conversation, which are left out here because the whole had "
        f"become too long:\n\n{text}"
    )


def assistant_message(response_json: str) -> ModelResponse:
    """A reply kept earlier as `ModelReply.response_json`. Raises `ValueError` for anything else."""
    messages = ModelMessagesTypeAdapter.validate_json(response_json)
    if len(messages) != 1 or not isinstance(messages[0], ModelResponse):
        raise ValueError("This is not one reply of a model.")
    return messages[0]


def tool_result(call_id: str, tool: str, content: str, outcome: str) -> ModelRequest:
    """How a tool call ended: `content` is what the model reads, `outcome` one of the outcomes of a
    call.
    """
    part = ToolReturnPart(
        tool_name=tool,
        content=content,
        tool_call_id=call_id,
        outcome=_PYDANTIC_OUTCOMES.get(outcome, "failed"),  # type: ignore[arg-type]
        metadata={OUTCOME: outcome},
    )
    return ModelRequest(parts=[part])


def joined(messages: Iterable[ModelMessage]) -> list[ModelMessage]:
    """The messages with neighbouring requests made one: parallel results belong together."""
    result: list[ModelMessage] = []
    for message in messages:
        last = result[-1] if result else None
        if isinstance(message, ModelRequest) and isinstance(last, ModelRequest):
            result[-1] = replace(last, parts=[*last.parts, *message.parts])
        else:
            result.append(message)
    return result


def response_json(response: ModelResponse) -> str:
    """A reply as text to keep; `assistant_message` reads it back."""
    return ModelMessagesTypeAdapter.dump_json([response]).decode()
