"""The offline models, `demo:refund-desk` and `demo:script`: they stream as a real one does.

Settings they read (all optional but the script): `script`, `model_call_index`, and `word_delay`,
the pause between two words as a duration (30 ms unless told). With `purpose: summary` they list how
the newest paragraphs begin, and play no script on.
"""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, UserPromptPart
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RequestUsage

from sessions_app.tools.durations import duration_seconds

DEFAULT_WORD_DELAY = "30ms"

#: Of a demo model's summary.
SUMMARY_LINES = 20

_CHARACTERS_PER_TOKEN = 4
#: In so many pieces a text or the arguments of a call come at most, however long they are.
_PIECES = 200


@dataclass(frozen=True)
class Call:
    """A tool call a demo model makes."""

    tool: str
    args: Mapping[str, Any]

    def args_json(self) -> str:
        """The arguments as JSON; a Decimal is written as the number it is, digit for digit."""
        return to_json(self.args)


@dataclass(frozen=True)
class Utterance:
    """One reply of a demo model: a `pause` in seconds, then words, then calls; or an error."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    error: Exception | None = None
    pause: float = 0.0


Decide = Callable[[list[ModelMessage], AgentInfo], Utterance]


def build_demo_model(name: str, settings: Mapping[str, Any]) -> Model:
    """`demo:refund-desk` or `demo:script`.

    Raises `ValueError`, in words, for another name or a faulty script.
    """
    from sessions_app.llm.refund_desk import decide_refunds
    from sessions_app.llm.script_model import ScriptPlayer

    word_delay = duration_seconds(settings.get("word_delay", DEFAULT_WORD_DELAY))
    if settings.get("purpose") == "summary":
        return DemoModel(name, summarise, word_delay=0)
    if name == "demo:refund-desk":
        return DemoModel(name, decide_refunds, word_delay)
    if name == "demo:script":
        player = ScriptPlayer(settings.get("script") or [], settings.get("model_call_index"))
        return DemoModel(name, player.decide, word_delay)
    raise ValueError(
        f"There is no demo model {name!r}; there are demo:refund-desk and demo:script."
    )


def summarise(messages: list[ModelMessage], info: AgentInfo) -> Utterance:
    """The first words of every paragraph: no script is played on by a summary."""
    text = "".join(
        part.content
        for message in messages
        for part in message.parts
        if isinstance(part, UserPromptPart) and isinstance(part.content, str)
    )
    lines = [line.lstrip("- ") for line in text.splitlines() if line.strip("- ")]
    return Utterance(text="\n".join(f"- {line[:80]}" for line in lines[-SUMMARY_LINES:]))


class DemoModel(FunctionModel):
    """Streams what `decide` says: word by word, arguments in pieces, tokens guessed by length."""

    def __init__(self, name: str, decide: Decide, word_delay: float) -> None:
        self._decide = decide
        self._word_delay = word_delay
        super().__init__(stream_function=self._speak, model_name=name)

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: Any = None,
    ) -> AsyncGenerator[StreamedResponse]:
        opened = super().request_stream(
            messages, model_settings, model_request_parameters, run_context
        )
        async with opened as stream:
            read = len(ModelMessagesTypeAdapter.dump_json(messages)) // _CHARACTERS_PER_TOKEN
            stream._usage += RequestUsage(input_tokens=read)
            yield stream

    async def _speak(
        self, messages: list[ModelMessage], info: AgentInfo
    ) -> AsyncIterator[str | dict[int, DeltaToolCall]]:
        utterance = self._decide(messages, info)
        if utterance.pause:
            await asyncio.sleep(utterance.pause)
        if utterance.error is not None:
            raise utterance.error
        words = re.findall(r"\S+\s*|\s+", utterance.text)
        at_once = -(-len(words) // _PIECES)
        for start in range(0, len(words), at_once or 1):
            await asyncio.sleep(self._word_delay)
            yield "".join(words[start : start + at_once])
        for index, call in enumerate(utterance.calls):
            yield {index: DeltaToolCall(name=call.tool)}
            args = call.args_json()
            for piece in _slices(args, max(24, -(-len(args) // _PIECES))):
                await asyncio.sleep(self._word_delay)
                yield {index: DeltaToolCall(json_args=piece)}


def to_json(value: Any) -> str:
    """Compact JSON in which a Decimal keeps its digits (`184.90`, not `184.9`)."""
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, Mapping):
        return (
            "{"
            + ", ".join(f"{json.dumps(str(key))}: {to_json(item)}" for key, item in value.items())
            + "}"
        )
    if isinstance(value, list | tuple):
        return "[" + ", ".join(to_json(item) for item in value) + "]"
    return json.dumps(value, ensure_ascii=False)


def _slices(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]
