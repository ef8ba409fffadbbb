"""An AgentEvent in a sentence. Pure; an unknown type is told by its name alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sessions_app.conversation import tool_words
from sessions_app.graph.text import shorten
from sessions_app.graph.words import State
from sessions_app.state_words import OUTCOME

WORDS_SHOWN = 160
# What the filter offers: the first word of a type.
FAMILIES = {
    "session": "Session",
    "turn": "Turns",
    "message": "Messages",
    "model": "Model calls",
    "tool": "Tool calls",
    "approval": "Approvals",
    "step": "Step changes",
    "settings": "Settings",
    "spend": "Spend",
    "question": "Questions",
    "timer": "Timers",
}
_STATE_BY_ENDING: dict[str, State] = {
    "completed": "ok",
    "failed": "bad",
    "outcome_unknown": "odd",
    "requested": "act",
    "asked": "act",
    "blocked": "act",
    "decided": "ok",
    "answered": "ok",
    "started": "run",
}

Payload = Mapping[str, Any]


def words_of(type: str, payload: Payload) -> str:
    """What happened, in words, at most WORDS_SHOWN columns of visible text."""
    family = type.partition(".")[0]
    say = _SAY.get(type) or _SAY.get(family)
    said = say(payload) if say else ""
    return shorten(" ".join(said.split()), WORDS_SHOWN)


def state_of_event(type: str) -> State:
    """The hue of an event: only what ended, failed or asks for a person has one."""
    family, _, ending = type.partition(".")
    if family == "tool" and ending == "requested":
        return "off"
    return _STATE_BY_ENDING.get(ending, "off")


def _text(payload: Payload, name: str) -> str:
    value = payload.get(name)
    return "" if value is None else str(value)


def _step(payload: Payload) -> str:
    how = payload.get("outcome") or payload.get("status") or ""
    words = OUTCOME[how].words.lower() if how in OUTCOME else str(how).replace("_", " ")
    attempt = payload.get("attempt") or 1
    again = f", attempt {attempt}" if attempt != 1 else ""
    what = tool_words(_text(payload, "tool"))
    return _joined(f"{what}: {words}{again}" if what else f"{words}{again}", payload, "detail")


def _tool(payload: Payload) -> str:
    return _joined(tool_words(_text(payload, "tool")), payload, "words")


def _tool_requested(payload: Payload) -> str:
    asks = "waits for approval first" if payload.get("needs_approval") else "no approval needed"
    return f"{tool_words(_text(payload, 'tool'))} ({_text(payload, 'effect')}), {asks}"


def _model_completed(payload: Payload) -> str:
    calls = payload.get("calls") or []
    names = ", ".join(tool_words(str(call.get("tool", ""))) for call in calls[:6])
    more = f" and {len(calls) - 6} more" if len(calls) > 6 else ""
    decided = f"asked for {names}{more}" if calls else "answered"
    cost = payload.get("cost")
    price = f"${cost}" if cost is not None else "price unknown"
    tokens = f"{_number(payload, 'input_tokens')} in, {_number(payload, 'output_tokens')} out"
    return f"{decided} · {tokens} · {price}"


def _approval_requested(payload: Payload) -> str:
    return (
        f"{tool_words(_text(payload, 'tool'))} needs {_text(payload, 'permission')}, "
        f"risk {_text(payload, 'risk')}"
    )


def _approval_decided(payload: Payload) -> str:
    verdict = {"approve": "approved", "reject": "rejected"}.get(
        _text(payload, "verdict"), _text(payload, "verdict")
    )
    by = _person(payload.get("by"))
    return _joined(f"{verdict} by {by}" if by else verdict, payload, "reason")


def _question_asked(payload: Payload) -> str:
    questions = payload.get("questions") or []
    return " · ".join(str(question.get("question", "")) for question in questions)


def _question_answered(payload: Payload) -> str:
    answers = [", ".join(map(str, answer)) for answer in payload.get("answers") or []]
    return f"{_person(payload.get('by'))}: {' · '.join(answers)}"


def _timer_fired(payload: Payload) -> str:
    by = _person(payload.get("skipped_by"))
    return f"skipped by {by}" if by else "its moment came"


def _message(payload: Payload) -> str:
    author = _person(payload.get("author"))
    text = _text(payload, "text")
    return f"{author}: {text}" if author and text else author or text


def _by(what: str, payload: Payload, name: str) -> str:
    return _joined(f"{what} by {_person(payload.get('by'))}", payload, name)


def _turn(payload: Payload) -> str:
    return _joined(f"turn {_text(payload, 'turn')}", payload, "reason")


def _session(payload: Payload) -> str:
    status = _text(payload, "status")
    return _joined(status.replace("_", " "), payload, "reason")


def _spend_raised(payload: Payload) -> str:
    by = _person(payload.get("by"))
    if payload.get("amount") == "0":
        return f"{by} had the budgets asked again"
    return f"{by} lets it spend ${_text(payload, 'amount')} more"


def _compacted(payload: Payload) -> str:
    before, after = _number(payload, "tokens_before"), _number(payload, "tokens_after")
    return f"{_text(payload, 'covers')} summarised for the model: {before} tokens, now {after}"


def _joined(first: str, payload: Payload, name: str) -> str:
    return " — ".join(part for part in (first, _text(payload, name)) if part)


def _person(value: Any) -> str:
    return str(value.get("name", "")) if isinstance(value, Mapping) else str(value or "")


def _number(payload: Payload, name: str) -> str:
    value = payload.get(name)
    return f"{value:,}" if isinstance(value, int) else "?"


_SAY: dict[str, Callable[[Payload], str]] = {
    "step.changed": _step,
    "tool.requested": _tool_requested,
    "tool": _tool,
    "tool.started": lambda payload: _joined(tool_words(_text(payload, "tool")), payload, "child"),
    "model.started": lambda payload: _text(payload, "model"),
    "model.delta": lambda payload: _text(payload, "text"),
    "model.reasoning": lambda payload: _text(payload, "text"),
    "model.completed": _model_completed,
    "model.failed": lambda payload: _text(payload, "error"),
    "approval.requested": _approval_requested,
    "approval.decided": _approval_decided,
    "approval.expired": lambda payload: "nobody answered before the deadline",
    "approval.canceled": lambda payload: "no longer needed",
    "question.asked": _question_asked,
    "question.answered": _question_answered,
    "timer.set": lambda payload: f"until {_text(payload, 'until')}",
    "timer.fired": _timer_fired,
    "message": _message,
    "message.edited": lambda payload: _by("edited", payload, "text"),
    "message.deleted": lambda payload: _by("withdrawn", payload, ""),
    "message.steered": lambda payload: _by("steered in", payload, ""),
    "settings.changed": lambda payload: _by(
        f"revision {_text(payload, 'revision')}: {', '.join(payload.get('patch') or {})}",
        payload,
        "",
    ),
    "spend.blocked": lambda payload: _text(payload, "words"),
    "spend.raised": _spend_raised,
    "turn": _turn,
    "session.compacted": _compacted,
    "session": _session,
}
