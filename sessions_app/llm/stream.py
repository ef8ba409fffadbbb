"""Calls a model and streams its reply."""

import json
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Literal, cast

from pydantic_ai.direct import model_request_stream
from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from sessions_app.llm.factory import secret_of
from sessions_app.llm.failures import ModelFailed, classify
from sessions_app.llm.history import joined, response_json
from sessions_app.tools.definitions import ToolDef
from sessions_app.tools.redaction import redact

OnDelta = Callable[[Literal["text", "reasoning"], str], Awaitable[None]]

LONGEST_CALL_ID = 160
_KNOWN_SETTINGS = frozenset(ModelSettings.__annotations__)
_PROVIDER_SETTINGS = (
    "openai_",
    "anthropic_",
    "google_",
    "groq_",
    "mistral_",
    "openrouter_",
    "bedrock_",
    "xai_",
)


@dataclass(frozen=True)
class RequestedCall:
    """A tool call the model asks for. `args_json` is its own text, unchanged: it may not even be
    JSON.
    """

    call_id: str
    tool: str
    args_json: str


@dataclass(frozen=True)
class ModelReply:
    """A finished reply. Cached tokens are part of `input_tokens`.

    `response_json` is what `history.assistant_message` reads back. Tokens are 0 where the provider
    gave no count. `cost` is in US dollars by list price, None where usage or price is unknown.
    `finish_reason` is `stop`, `length`, `content_filter`, `tool_call`, `error` or None.
    """

    text: str
    reasoning: str
    calls: tuple[RequestedCall, ...]
    response_json: str
    model_name: str
    input_tokens: int
    output_tokens: int
    cost: Decimal | None
    finish_reason: str | None
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0


async def stream_response(
    model: Model,
    messages: Sequence[ModelMessage],
    instructions: str,
    tools: Sequence[ToolDef],
    settings: Mapping[str, Any],
    on_delta: OnDelta,
) -> ModelReply:
    """Calls the model once and awaits `on_delta` for each piece of text or reasoning as it comes.

    Neighbouring requests in `messages` are joined. `settings` are pydantic-ai's model settings;
    keys it does not know are left out. The SDK does not retry by itself: whoever calls counts the
    attempts. Call ids in the reply are unique in the whole history, whatever the provider sent.
    Raises `ModelFailed`; an error of `on_delta` goes through as it is.
    """
    history = _with_instructions(joined(messages), instructions)
    failure: ModelFailed | None = None
    try:
        response = await _streamed(model, history, tools, settings, on_delta)
    except _ListenerFailed as error:
        raise error.error from None
    except Exception as error:
        failure = classify(error, secret_of(model))
    if failure is not None:
        # Raised here, outside the handler: the provider's error, which may quote the key, is not
        # its context.
        raise failure
    return _reply(_with_own_call_ids(response, history), model)


async def _streamed(
    model: Model,
    history: list[ModelMessage],
    tools: Sequence[ToolDef],
    settings: Mapping[str, Any],
    on_delta: OnDelta,
) -> ModelResponse:
    stream = model_request_stream(
        model,
        history,
        model_settings=_model_settings(settings),
        model_request_parameters=ModelRequestParameters(
            function_tools=[_definition(tool) for tool in tools]
        ),
    )
    # Entering the model closes its HTTP connections afterwards; several calls may have it entered.
    async with model, stream as events:
        async for kind, piece in _pieces(aiter(events)):
            try:
                await on_delta(kind, redact(piece, secret_of(model)))
            except Exception as error:
                raise _ListenerFailed(error) from error
        response = events.get()
    if response.state != "complete":
        raise UnexpectedModelBehavior("The answer ended before it was complete.")
    return response


async def _pieces(
    events: AsyncIterator[Any],
) -> AsyncIterator[tuple[Literal["text", "reasoning"], str]]:
    async for event in events:
        match event:
            case PartStartEvent(part=TextPart(content=piece)) if piece:
                yield "text", piece
            case PartStartEvent(part=ThinkingPart(content=piece)) if piece:
                yield "reasoning", piece
            case PartDeltaEvent(delta=TextPartDelta(content_delta=piece)) if piece:
                yield "text", piece
            case PartDeltaEvent(delta=ThinkingPartDelta(content_delta=piece)) if piece:
                yield "reasoning", piece


def _reply(response: ModelResponse, model: Model) -> ModelReply:
    """What is kept of a response. A model that repeats the key it was called with is not quoted."""
    key = secret_of(model)
    calls = tuple(
        RequestedCall(part.tool_call_id, part.tool_name, redact(_args_text(part), key))
        for part in response.parts
        if isinstance(part, ToolCallPart)
    )
    return ModelReply(
        text=redact("".join(p.content for p in response.parts if isinstance(p, TextPart)), key),
        reasoning=redact(
            "\n\n".join(p.content for p in response.parts if isinstance(p, ThinkingPart)), key
        ),
        calls=calls,
        response_json=redact(response_json(response), key),
        model_name=response.model_name or model.model_name,
        input_tokens=response.usage.input_tokens or 0,
        output_tokens=response.usage.output_tokens or 0,
        cost=cost_of(response),
        finish_reason=response.finish_reason,
        cache_read_tokens=response.usage.cache_read_tokens or 0,
        cache_write_tokens=response.usage.cache_write_tokens or 0,
    )


def cost_of(response: ModelResponse) -> Decimal | None:
    """The list price of a reply in US dollars; None where its usage or its model's price is
    unknown.
    """
    if not response.usage.has_values() or not response.model_name:
        return None
    try:
        return response.cost().total_price
    except (LookupError, ValueError, AssertionError):
        return None


def _args_text(part: ToolCallPart) -> str:
    if isinstance(part.args, str):
        return part.args if part.args.strip() else "{}"
    return json.dumps(part.args or {}, ensure_ascii=False)


def _with_own_call_ids(response: ModelResponse, history: Sequence[ModelMessage]) -> ModelResponse:
    """The reply with a fresh id for every call whose id is empty, was used before or is unfit to
    be kept: a cut one could be another's.
    """
    used = {
        part.tool_call_id
        for message in history
        if isinstance(message, ModelResponse)
        for part in message.parts
        if isinstance(part, ToolCallPart)
    }
    parts = []
    for part in response.parts:
        if isinstance(part, ToolCallPart):
            if part.tool_call_id in used or not _fit(part.tool_call_id):
                part = replace(part, tool_call_id=f"call_{uuid.uuid4().hex}")
            used.add(part.tool_call_id)
        parts.append(part)
    return replace(response, parts=parts)


def _fit(call_id: str) -> bool:
    return 0 < len(call_id) <= LONGEST_CALL_ID and call_id.isprintable()


def _with_instructions(messages: list[ModelMessage], instructions: str) -> list[ModelMessage]:
    """Instructions ride on the last request."""
    if not instructions:
        return messages
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if isinstance(message, ModelRequest):
            return [
                *messages[:index],
                replace(message, instructions=instructions),
                *messages[index + 1 :],
            ]
    return [*messages, ModelRequest(parts=[], instructions=instructions)]


def _definition(tool: ToolDef) -> ToolDefinition:
    return ToolDefinition(
        name=tool.name, description=tool.description, parameters_json_schema=dict(tool.schema)
    )


def _model_settings(settings: Mapping[str, Any]) -> ModelSettings:
    known = {
        name: value
        for name, value in settings.items()
        if name in _KNOWN_SETTINGS or name.startswith(_PROVIDER_SETTINGS)
    }
    return cast(ModelSettings, {"max_retries": 0} | known)


class _ListenerFailed(Exception):
    """Carries an error of `on_delta` past the classification of the model's errors."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error
