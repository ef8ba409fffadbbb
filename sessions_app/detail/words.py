"""Words of the session page that no other page needs. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from sessions_app.graph.words import duration_words
from sessions_app.state_words import StateWords, session_words

TYPE_WORDS = {
    "AwaitMessage": "Waits for a message",
    "RunModel": "Model call",
    "AwaitToolApproval": "Approval of a tool call",
    "CallTool": "Tool call",
    "CallSingleAttemptTool": "Tool call, runs once and is never retried",
    "AwaitAnswer": "Question to a person",
    "DurableWait": "Timer",
    "ResumeTurn": "Joins the results of a response's tool calls",
    "CompactContext": "Shortens the context",
    "AwaitSpend": "Waits for a higher spend limit",
    "RecordToolFailure": "Records a tool call that failed",
    "RecordToolOutcomeUnknown": "Records a tool call with an unknown outcome",
}
EFFECT_WORDS = {
    "read": "reads only",
    "idempotent": "writes, safe to repeat",
    "write": "writes, never repeated",
}


def session_standing(session: Any, deadline: datetime | None, now: datetime) -> StateWords:
    """How a session stands; a wait says how long is left until the next ``deadline``."""
    standing = session_words(session)
    waits = session.phase in ("waiting_approval", "waiting_timer") and session.status == "running"
    if waits and deadline and not session.stuck:
        return StateWords(standing.hue, f"{standing.words}, {_left(deadline - now)}")
    return standing


def _left(span: timedelta) -> str:
    if span <= timedelta(0):
        return "deadline passed"
    if span < timedelta(minutes=1):
        return "less than a minute left"
    minutes = timedelta(minutes=span // timedelta(minutes=1))
    return f"{duration_words(minutes)} left"
