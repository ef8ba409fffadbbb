"""What the model reads of a session: the newest summary, and what came after the messages it covers."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

from pydantic_ai.messages import ModelMessage

from sessions_app.llm import history
from sessions_app.models import ContextSummary, Session


class Said(NamedTuple):
    """Of a message, what is read here."""

    turn: int
    before_step: str
    author_name: str
    text: str


class Called(NamedTuple):
    """Of a tool call, what is read here."""

    model_step: str
    call_id: str
    tool: str
    outcome: str
    words: str
    result: str

    @property
    def content(self) -> str:
        """What the model reads of its result."""
        return self.words or self.result or "It ended without a result."


@dataclass(frozen=True)
class Part:
    """What is never cut apart: a turn's first message, or a model call with what was steered in
    before it and the results of its calls. `position` is the call's, 0 of a first message.
    """

    turn: int
    position: int
    step_id: str = ""
    said: list[Said] = field(default_factory=list)
    response: str | None = None
    calls: list[Called] = field(default_factory=list)

    def messages(self) -> list[ModelMessage]:
        """As the model reads them."""
        read: list[ModelMessage] = [history.user_message(message.text) for message in self.said]
        if self.response is not None:
            read.append(history.assistant_message(self.response))
        return read + [_result(call) for call in self.calls]

    @property
    def characters(self) -> int:
        said = sum(len(message.text) for message in self.said)
        answered = len(self.response or "")
        return said + answered + sum(len(call.content) for call in self.calls)


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
    messages = session.messages.filter(turn__gt=turn).order_by("id")
    opened: list[Said] = []
    steered: dict[str, list[Said]] = defaultdict(list)
    for message in map(Said._make, messages.values_list(*Said._fields)):
        if message.before_step:
            steered[message.before_step].append(message)
        else:
            opened.append(message)
    calls = session.calls.filter(turn__gt=turn).order_by("turn", "id")
    by_step: dict[str, list[Called]] = defaultdict(list)
    for call in map(Called._make, calls.values_list(*Called._fields)):
        by_step[call.model_step].append(call)
    steps = session.steps.filter(type="RunModel", turn__gt=turn, position__gt=position)
    answers = steps.order_by("position").values_list("turn", "position", "step_id", "response")
    found = [Part(message.turn, 0, said=[message]) for message in opened]
    found += [
        Part(number, place, step_id, steered[step_id], response, by_step[step_id])
        for number, place, step_id, response in answers
    ]
    return sorted(found, key=lambda part: (part.turn, part.position))


def _result(call: Called) -> ModelMessage:
    return history.tool_result(call.call_id, call.tool, call.content, call.outcome or "canceled")
