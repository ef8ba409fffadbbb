"""A session's rows as a conversation: turns of messages, model calls and tool calls. Pure."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol

from sessions_app.graph.model import GraphStep
from sessions_app.graph.text import shorten
from sessions_app.graph.words import State, duration_words, state_of
from sessions_app.state_words import outcome_words, step_words

# One long text must not fill the page, nor many the answer; the step panel has all of it.
TEXT_SHOWN = 6_000
TEXT_BUDGET = 120_000
TEXT_BEYOND_BUDGET = 300
ARGS_SHOWN = 90
# Model calls that are shown before somebody asks for all: of the newest turn, of one before it.
SPOKEN_SHOWN = 12
SPOKEN_SHOWN_BEFORE = 3

ASKING = frozenset({"AwaitToolApproval", "AwaitAnswer"})
ENDED = frozenset({"completed", "failed", "canceled"})
WAITING = frozenset({"queued", "steered"})


class StepRow(Protocol):
    """A Step with what a conversation needs; `text` may be cut to TEXT_SHOWN + 1 characters."""

    step_id: str
    type: str
    turn: int
    status: str
    outcome: str
    attempt: int
    call_id: str
    tool: str
    detail: str
    text: str
    model: str
    next_attempt_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None


class CallRow(Protocol):
    """A ToolCall; `args_start` and `words_start` are the first characters of its long texts.

    `child_id`: the session that a delegation began.
    """

    call_id: str
    model_step: str
    turn: int
    tool: str
    effect: str
    outcome: str
    args_start: str
    words_start: str
    child_id: str | None
    started_at: datetime | None
    ended_at: datetime | None


class MessageRow(Protocol):
    message_id: str
    text: str
    author_name: str
    state: str
    turn: int | None
    before_step: str
    edited_by_name: str
    created_at: datetime


class TurnRow(Protocol):
    number: int
    state: str
    detail: str
    started_at: datetime
    ended_at: datetime | None


class SummaryRow(Protocol):
    """Stands for older messages when the model is called."""

    turn: int
    line: str
    text: str


@dataclass(frozen=True)
class Said:
    """A person's message. `cut`: there is more of it; `steered`: into a turn that runs already."""

    message_id: str
    author: str
    text: str
    at: datetime
    cut: bool = False
    steered: bool = False
    edited_by: str = ""
    kind: str = "said"


@dataclass(frozen=True)
class Call:
    """One tool call as a line; `step_id` is the Step that tells most about it."""

    call_id: str
    step_id: str
    tool: str
    args: str
    state: State
    words: str
    why: str
    time: str
    child: str = ""


@dataclass(frozen=True)
class Spoken:
    """One model call: its words (`live` while they are still coming), its error, and its calls."""

    step_id: str
    model: str
    text: str
    state: State
    live: bool
    error: str
    calls: tuple[Call, ...]
    at: datetime | None
    cut: bool = False
    kind: str = "spoken"


@dataclass(frozen=True)
class TurnItems:
    """A turn. `hidden` says how many model calls before the shown ones are left out."""

    number: int
    state: str
    note: str
    started_at: datetime | None
    items: tuple[Said | Spoken, ...]
    hidden: int = 0
    summaries: tuple[SummaryRow, ...] = ()


@dataclass
class _Budget:
    left: int = TEXT_BUDGET

    def cut(self, text: str) -> tuple[str, bool]:
        room = TEXT_SHOWN if self.left > 0 else TEXT_BEYOND_BUDGET
        self.left -= min(len(text), room)
        return text[:room], len(text) > room


@dataclass(frozen=True)
class Rows:
    """What was read for some turns; `partial` maps a Step to the text it has streamed so far."""

    turns: Sequence[TurnRow]
    messages: Sequence[MessageRow]
    steps: Sequence[StepRow]
    calls: Sequence[CallRow]
    partial: Mapping[str, str] = field(default_factory=dict)
    summaries: Sequence[SummaryRow] = ()


def build(rows: Rows, *, whole: bool = False) -> list[TurnItems]:
    """The turns in their order, each with its items in theirs. `whole` leaves nothing out."""
    budget = _Budget()
    said = _grouped(rows.messages, lambda message: message.turn)
    steps = _grouped(rows.steps, lambda step: step.turn)
    calls = _grouped(rows.calls, lambda call: call.model_step)
    by_call = _grouped(rows.steps, lambda step: step.call_id)
    built = []
    # Newest first, so that the budget is spent on what people came to read.
    for turn in sorted(rows.turns, key=lambda turn: turn.number, reverse=True):
        models = [step for step in steps[turn.number] if step.type == "RunModel"]
        room = SPOKEN_SHOWN_BEFORE if built else SPOKEN_SHOWN
        shown = models if whole else models[-room:]
        spoken = [
            _spoken(step, calls[step.step_id], by_call, rows.partial, budget)
            for step in reversed(shown)
        ]
        built.append(
            TurnItems(
                number=turn.number,
                state=turn.state,
                note=_note(turn, {item.error for item in spoken}),
                started_at=turn.started_at,
                items=_interleaved(said[turn.number], spoken[::-1], budget),
                hidden=len(models) - len(shown),
                summaries=tuple(one for one in rows.summaries if one.turn == turn.number),
            )
        )
    return built[::-1]


def _interleaved(
    messages: Sequence[MessageRow], spoken: Sequence[Spoken], budget: _Budget
) -> tuple[Said | Spoken, ...]:
    """What opened the turn, then each model call after what was steered in before it."""
    shown = {item.step_id for item in spoken}
    steered = _grouped(messages, lambda message: message.before_step)
    items: list[Said | Spoken] = [
        _said(message, budget) for message in messages if message.before_step not in shown
    ]
    for item in spoken:
        items += [_said(message, budget) for message in steered[item.step_id]]
        items.append(item)
    return tuple(items)


def queue(messages: Iterable[MessageRow]) -> list[Said]:
    """The messages that no turn has taken in yet."""
    budget = _Budget()
    return [_said(message, budget) for message in messages if message.state in WAITING]


def args_words(text: str) -> str:
    """Arguments on one line: the values of an object, exact to the digit, or the JSON's start."""
    try:
        value = json.loads(text, parse_float=str)
    except (ValueError, RecursionError):
        return shorten(" ".join(text.split()), ARGS_SHOWN)
    if not isinstance(value, dict):
        return shorten(" ".join(text.split()), ARGS_SHOWN)
    return shorten(" · ".join(filter(None, map(_value_words, value.values()))), ARGS_SHOWN)


def tool_words(tool: str) -> str:
    """A tool's own name, without its connection's."""
    return tool.partition("__")[2] or tool


def call_state(call: CallRow, steps: Sequence[StepRow]) -> tuple[State, str]:
    """How a call stands: by its outcome, else by the Step of it that moves now."""
    if call.outcome:
        state = state_of(_as_graph_step("CallTool", "completed", call.outcome))
        return state, outcome_words(call.outcome).words.lower()
    step = _telling(steps)
    if step is None:
        return "off", "planned"
    if step.type in ASKING and step.status == "waiting":
        asked = "approval" if step.type == "AwaitToolApproval" else "an answer"
        return "act", f"waits for {asked}"
    if step.status in ENDED:
        return "run", "about to run"
    state = state_of(_as_graph_step(step.type, step.status, step.outcome))
    return state, step_words(step).words.lower()


def _spoken(
    step: StepRow,
    calls: Sequence[CallRow],
    by_call: Mapping[str, list[StepRow]],
    partial: Mapping[str, str],
    budget: _Budget,
) -> Spoken:
    live = step.status not in ENDED
    text, cut = budget.cut(step.text or (partial.get(step.step_id, "") if live else ""))
    return Spoken(
        step_id=step.step_id,
        model=step.model,
        text=text,
        cut=cut,
        live=live,
        state=state_of(_as_graph_step(step.type, step.status, step.outcome)),
        error=_error(step),
        calls=tuple(_call(call, by_call[call.call_id]) for call in calls),
        at=step.ended_at or step.started_at,
    )


def _error(step: StepRow) -> str:
    if step.status == "failed":
        return step.detail or "The model call failed."
    if step.status == "canceled":
        return step.detail or "Canceled before it was finished."
    # A model call that was scheduled goes back to planned only while a budget holds it.
    if step.status == "planned":
        return "Waits for budget."
    if step.next_attempt_at and step.status not in ENDED:
        return f"Trying again, attempt {step.attempt}. {step.detail}".strip()
    return ""


def _call(call: CallRow, steps: Sequence[StepRow]) -> Call:
    state, words = call_state(call, steps)
    step = _telling(steps)
    span = call.ended_at - call.started_at if call.started_at and call.ended_at else None
    return Call(
        call_id=call.call_id,
        step_id=step.step_id if step else call.model_step,
        tool=tool_words(call.tool),
        args=_asked_words(call) or args_words(call.args_start),
        state=state,
        words=words,
        why=_why(call, step),
        time=_time(span),
        child=call.child_id or "",
    )


def _asked_words(call: CallRow) -> str:
    """What a question asks, in a line."""
    if call.tool != "ask_user":
        return ""
    try:
        asked = [str(one["question"]) for one in json.loads(call.args_start)["questions"]]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    return shorten(" · ".join(" ".join(words.split()) for words in asked), ARGS_SHOWN)


def _why(call: CallRow, step: StepRow | None) -> str:
    """What else is to be said of how a call ended: who answered, until when it waited, what failed."""
    if call.outcome == "completed" and step is not None and step.type == "AwaitAnswer":
        return f"Answered {step.detail}"
    waited = step is not None and step.type == "DurableWait"
    return call.words_start if waited or call.outcome not in ("", "completed") else ""


def _telling(steps: Sequence[StepRow]) -> StepRow | None:
    """The Step of a call that tells most: the open one, else the tool's own, else the last."""
    if not steps:
        return None
    still_open = [step for step in steps if step.status not in ENDED and step.status != "planned"]
    if still_open:
        return still_open[-1]
    return next((step for step in reversed(steps) if step.type.startswith("Call")), steps[-1])


def _said(message: MessageRow, budget: _Budget) -> Said:
    text, cut = budget.cut(message.text)
    author = message.author_name or "Somebody"
    return Said(
        message.message_id,
        author,
        text,
        message.created_at,
        cut,
        steered=bool(message.before_step) or message.state == "steered",
        edited_by=message.edited_by_name,
    )


def _note(turn: TurnRow, told: set[str]) -> str:
    """How the turn ended, and why, unless one of its model calls has ``told`` that already."""
    words = {"canceled": "This turn was canceled", "failed": "This turn failed"}.get(turn.state, "")
    known = not turn.detail or turn.detail in told
    return words if not words or known else f"{words}: {turn.detail}"


def _value_words(value: Any) -> str:
    if isinstance(value, str):
        return " ".join(value.split())
    if value is None:
        return ""
    return json.dumps(value, ensure_ascii=False)


def _time(span: timedelta | None) -> str:
    return duration_words(span) if span is not None else ""


def _as_graph_step(type: str, status: str, outcome: str) -> GraphStep:
    return GraphStep("", type, status, 0, (), outcome=outcome)


def _grouped(rows: Iterable[Any], key: Any) -> defaultdict[Any, list[Any]]:
    groups: defaultdict[Any, list[Any]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return groups
