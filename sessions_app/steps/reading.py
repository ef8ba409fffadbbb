"""What the model reads of a session: the newest summary, and what came after the messages it covers."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from pydantic_ai.messages import ModelMessage

from sessions_app.llm import history
from sessions_app.models import ContextSummary, Message, Session, Step, ToolCall


@dataclass(frozen=True)
class Part:
    """What is never cut apart: a turn's first message, or a model call with what was steered in
    before it and the results of its calls. `position` is the call's, 0 of a first message.
    """

    turn: int
    position: int
    step_id: str = ""
    said: list[Message] = field(default_factory=list)
    answer: Step | None = None
    calls: list[ToolCall] = field(default_factory=list)

    def messages(self) -> list[ModelMessage]:
        """As the model reads them."""
        read: list[ModelMessage] = [history.user_message(message.text) for message in self.said]
        if self.answer is not None and self.answer.response is not None:
            read.append(history.assistant_message(self.answer.response))
        return read + [_result(call) for call in self.calls]

    @property
    def characters(self) -> int:
        said = sum(len(message.text) for message in self.said)
        answered = len(self.answer.response or "") if self.answer else 0
        return said + answered + sum(len(content_of(call)) for call in self.calls)


def conversation(session: Session) -> list[ModelMessage]:
    """The session so far as the model reads it, built from rows."""
    summary = session.newest_summary
    read: list[ModelMessage] = []
    if summary is not None:
        read.append(history.summary_message(summary.covers, summary.text))
    for part in parts(session, summary):
        read.extend(part.messages())
    return read


def parts(session: Session, summary: ContextSummary | None) -> list[Part]:
    """What no summary covers, in order. Only rows after the summary's end are read."""
    turn, position = (summary.last_turn, summary.position) if summary else (0, 0)
    steps = session.steps.filter(type="RunModel", turn__gt=turn, position__gt=position)
    calls = session.calls.filter(turn__gt=turn)
    opened: list[Message] = []
    steered: dict[str, list[Message]] = defaultdict(list)
    for message in session.messages.filter(turn__gt=turn).order_by("id"):
        if message.before_step:
            steered[message.before_step].append(message)
        else:
            opened.append(message)
    by_step: dict[str, list[ToolCall]] = defaultdict(list)
    # The large texts that no model reads stay where they are.
    for call in calls.order_by("turn", "id").defer("args", "original_args", "schema"):
        by_step[call.model_step].append(call)
    found = [Part(message.turn or 0, 0, said=[message]) for message in opened]
    found += [
        Part(s.turn, s.position, s.step_id, steered[s.step_id], s, by_step[s.step_id])
        for s in steps.order_by("position").defer("text", "reasoning", "detail")
    ]
    return sorted(found, key=lambda part: (part.turn, part.position))


def content_of(call: ToolCall) -> str:
    """What the model reads of a call's result."""
    return call.words or call.result or "It ended without a result."


def _result(call: ToolCall) -> ModelMessage:
    return history.tool_result(
        call.call_id, call.tool, content_of(call), call.outcome or "canceled"
    )
