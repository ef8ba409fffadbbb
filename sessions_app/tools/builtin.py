"""Built-in tools, offered to every agent beside those of its connections: asking people, and waiting.

Their names have no connection's prefix, so none of a connection's can be taken for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypedDict

from sessions_app.flow.terms import DELEGATE, Question
from sessions_app.models import Agent
from sessions_app.text import keepable
from sessions_app.tools.definitions import ToolDef
from sessions_app.tools.durations import parse_duration

LONGEST_WAIT = timedelta(days=366)
TASK_LENGTH = 32_000

ASK_USER = ToolDef(
    name="ask_user",
    description=(
        "Ask the people who operate this session 1 to 4 questions and wait for the answers. Use it "
        "when only a person can know. With choices, a person picks one (or several with multiple); "
        "free_text lets them also write an answer of their own. Without choices they write one."
    ),
    schema={
        "type": "object",
        "properties": {
            "questions": {
                "type": "array",
                "minItems": 1,
                "maxItems": 4,
                "items": {
                    "type": "object",
                    "properties": {
                        "question": {"type": "string", "minLength": 1, "maxLength": 2000},
                        "choices": {
                            "type": "array",
                            "maxItems": 20,
                            "items": {"type": "string", "minLength": 1, "maxLength": 200},
                        },
                        "multiple": {"type": "boolean"},
                        "free_text": {"type": "boolean"},
                    },
                    "required": ["question"],
                    "additionalProperties": False,
                },
            }
        },
        "required": ["questions"],
        "additionalProperties": False,
    },
)
WAIT_UNTIL = ToolDef(
    name="wait_until",
    description=(
        "Wait until a moment at most a year from now, then go on. The moment is ISO 8601 with its "
        "zone, like 2026-03-01T09:00:00Z. A person may skip the wait."
    ),
    schema={
        "type": "object",
        "properties": {"time": {"type": "string", "minLength": 1, "maxLength": 64}},
        "required": ["time"],
        "additionalProperties": False,
    },
)
WAIT_FOR = ToolDef(
    name="wait_for",
    description=(
        "Wait for a while, at most a year, then go on: a duration like 90s, 15m, 2h or 3d. "
        "A person may skip the wait."
    ),
    schema={
        "type": "object",
        "properties": {"duration": {"type": "string", "minLength": 1, "maxLength": 64}},
        "required": ["duration"],
        "additionalProperties": False,
    },
)
#: Offered to every agent. They wait, and do nothing to the world.
TOOLS = {tool.name: tool for tool in (ASK_USER, WAIT_UNTIL, WAIT_FOR)}


class Waits(TypedDict, total=False):
    """What the plan of a call that waits holds beside its arguments."""

    questions: list[Question]
    until: str


def tools_of(agent: Agent) -> list[ToolDef]:
    """All that ``agent`` has; that to delegate by only if it may give tasks to somebody."""
    return [*TOOLS.values(), *([_delegate(agent.delegates)] if agent.delegates else [])]


def offered(agent: Agent) -> list[ToolDef]:
    """All but those that a policy of ``agent`` leaves out by their very name."""
    left_out = {policy.pattern for policy in agent.tools.all() if not policy.enabled}
    return [tool for tool in tools_of(agent) if tool.name not in left_out]


def _delegate(names: list[str]) -> ToolDef:
    """The tool by which an agent gives a task to one of those that it may delegate to."""
    return ToolDef(
        name=DELEGATE,
        description=(
            "Give a task to another agent and wait for its answer. It works in a session of its own "
            "and sees nothing of this one, so write all that it needs to know into the task."
        ),
        schema={
            "type": "object",
            "properties": {
                "agent": {"type": "string", "enum": names},
                "task": {"type": "string", "minLength": 1, "maxLength": TASK_LENGTH},
            },
            "required": ["agent", "task"],
            "additionalProperties": False,
        },
    )


def waits(tool: str, args: Mapping[str, Any], now: datetime) -> Waits:
    """What a call of ``tool``, whose arguments fit its schema, waits for.

    A moment is in UTC. Raises `ValueError`, in words, for what no schema can judge.
    """
    if tool == ASK_USER.name:
        return {"questions": questions(args)}
    if tool == WAIT_UNTIL.name:
        return {"until": _bounded(_moment(args["time"]), now)}
    if tool == WAIT_FOR.name:
        return {"until": _bounded(_later(now, args["duration"]), now)}
    return {}


def questions(args: Mapping[str, Any]) -> list[Question]:
    """What a call of `ask_user` asks. Raises `ValueError`, in words."""
    return [_question(asked) for asked in args["questions"]]


def _question(asked: Mapping[str, Any]) -> Question:
    # A form sends back another line break than it was given, and no row keeps a NUL.
    choices = [" ".join(keepable(choice).split()) for choice in asked.get("choices", [])]
    words = keepable(asked["question"]).strip()
    if not words or not all(choices):
        raise ValueError("A question and its choices need words.")
    if len(set(choices)) != len(choices):
        raise ValueError(f"“{words[:80]}” offers the same choice twice.")
    return Question(
        words,
        choices,
        multiple=bool(choices and asked.get("multiple")),
        # Without choices there is no other way to answer.
        free_text=bool(not choices or asked.get("free_text")),
    )


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text.strip())
        if moment.tzinfo is not None:
            return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise ValueError(f"{text!r} is no moment with a zone; write it like 2026-03-01T09:00:00Z.")


def _later(now: datetime, duration: str) -> datetime:
    try:
        return now.astimezone(UTC) + parse_duration(duration)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)


def _bounded(until: datetime, now: datetime) -> str:
    if until - now > LONGEST_WAIT:
        raise ValueError(f"A wait may last {LONGEST_WAIT.days} days at most.")
    return until.isoformat()
