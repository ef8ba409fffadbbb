"""How one Step stands, as a state and in words. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

from sessions_app.graph.text import shorten

if TYPE_CHECKING:
    from sessions_app.graph.model import GraphStep

State = Literal["ok", "run", "act", "bad", "odd", "off"]

LABEL_COLUMNS = 120
# What fits below the label in the fixed box at the page's 11 px.
SUBLABEL_COLUMNS = 29

# An outcome is final: it outranks whatever status a late row may carry.
STATE_BY_OUTCOME: dict[str, State] = {
    "outcome_unknown": "odd",
    "failed": "bad",
    "rejected": "off",
    "expired": "off",
    "canceled": "off",
    "invalidated": "off",
    "superseded": "off",
}
STATE_BY_STATUS: dict[str, State] = {
    "planned": "off",
    "scheduled": "run",
    "active": "run",
    "completed": "ok",
    "failed": "bad",
    "canceled": "off",
    "outcome_unknown": "odd",
    "rejected": "off",
    "expired": "off",
}
WAITS: dict[str, tuple[State, str]] = {
    "AwaitToolApproval": ("act", "waits for approval"),
    "AwaitAnswer": ("act", "waits for an answer"),
    "AwaitSpend": ("act", "waits for spend"),
    "AwaitMessage": ("off", "waits for a message"),
    "DurableWait": ("off", "waits for a timer"),
    "ResumeTurn": ("off", "waits for the others"),
}
# Said where it adds to the colour; a completed step needs no word.
WORD_BY_STATUS = {
    "scheduled": "scheduled",
    "active": "running",
    "completed": "",
    "outcome_unknown": "outcome unknown",
}
WORD_BY_OUTCOME = {"outcome_unknown": "outcome unknown", "completed": ""}
# Their detail is who decided, answered or let it go on.
DECIDED = {"AwaitToolApproval", "AwaitAnswer"}
NOTE_BY_TYPE = {
    "AwaitMessage": "message",
    "RunModel": "model call",
    "AwaitAnswer": "question",
    "AwaitSpend": "spend limit",
    "DurableWait": "timer",
    "ResumeTurn": "joins the results",
    "CompactContext": "shortens the context",
    "RecordToolFailure": "records a failure",
    "RecordToolOutcomeUnknown": "records an unknown outcome",
}


def state_of(step: GraphStep) -> State:
    """One of ok, run, act, bad, odd, off: by outcome first, then by status."""
    if step.outcome in STATE_BY_OUTCOME:
        return STATE_BY_OUTCOME[step.outcome]
    if step.status == "waiting":
        return WAITS.get(step.type, ("run", ""))[0]
    return STATE_BY_STATUS.get(step.status, "off")


def standing_of(step: GraphStep) -> str:
    """In words for the legend, where its state alone would say too little; else ""."""
    if state_of(step) != "off":
        return ""
    how = step.outcome if step.outcome in STATE_BY_OUTCOME else step.status
    if how == "waiting":
        return WAITS[step.type][1]
    return how if how in ("planned", "canceled") else "did not run"


def label_of(step: GraphStep) -> str:
    """The tool's own name for a tool Step, the step id for any other."""
    return shorten(_tool_name(step) or step.step_id or "(no id)", LABEL_COLUMNS)


def note_of(step: GraphStep) -> str:
    """The second line that never changes: the step id under a tool, else what such a Step does."""
    if _tool_name(step):
        return shorten(step.step_id or "(no id)", SUBLABEL_COLUMNS)
    return shorten(NOTE_BY_TYPE.get(step.type, step.type) or "step", SUBLABEL_COLUMNS)


def sublabel_of(step: GraphStep) -> str:
    """How it stands now, like "waits for approval" or "attempt 2 · A-1042 · 38 ms"; may be ""."""
    before = [_word(step)]
    if step.attempt > 1:
        before.append(f"attempt {step.attempt}")
    if step.type in DECIDED:
        return _decided_line(before, step.detail, _duration(step))
    return _line(before, step.detail, [_duration(step)])


def folded_sublabel(steps: Sequence[GraphStep]) -> str:
    """The shared word and the longest duration of Steps drawn as one."""
    spans = [span for step in steps if (span := _span(step)) is not None]
    longest = f"up to {duration_words(max(spans))}" if spans else ""
    return _line([_word(steps[0])], "", [longest])


def duration_words(span: timedelta) -> str:
    """A span in its one or two leading units: 38 ms, 1.2 s, 2 min 5 s, 3 h 20 min, 4 d 2 h."""
    seconds = max(span.total_seconds(), 0.0)
    if seconds < 0.9995:
        return f"{round(seconds * 1000)} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for size, name, smaller, small_name in (
        (86400, "d", 3600, "h"),
        (3600, "h", 60, "min"),
        (60, "min", 1, "s"),
    ):
        if whole >= size:
            rest = whole % size // smaller
            return f"{whole // size} {name}" + (f" {rest} {small_name}" if rest else "")
    return f"{whole} s"


def _tool_name(step: GraphStep) -> str:
    if not step.tool:
        return ""
    _, separator, name = step.tool.partition("__")
    return name if separator and name else step.tool


def _word(step: GraphStep) -> str:
    if step.outcome in STATE_BY_OUTCOME:
        return WORD_BY_OUTCOME.get(step.outcome, step.outcome)
    if step.status == "waiting":
        return WAITS.get(step.type, ("run", "waiting"))[1]
    if step.type == "AwaitToolApproval" and step.outcome:
        return step.outcome
    return WORD_BY_STATUS.get(step.status, step.status)


def _span(step: GraphStep) -> timedelta | None:
    if step.started_at is None or step.ended_at is None:
        return None
    return step.ended_at - step.started_at


def _duration(step: GraphStep) -> str:
    span = _span(step)
    return "" if span is None else duration_words(span)


def _decided_line(before: list[str], detail: str, span: str) -> str:
    """Who decided says more than how long it took: the duration gives way first."""
    detail, whole = " ".join(detail[: LABEL_COLUMNS * 2].split()), ""
    for shown in (span, " ".join(span.split()[:2]), ""):
        whole = " · ".join(part for part in (*before, detail, shown) if part)
        if len(whole) <= SUBLABEL_COLUMNS:
            break
    return shorten(whole, SUBLABEL_COLUMNS)


def _line(before: list[str], detail: str, after: list[str]) -> str:
    """The parts joined by dots; when it is too long, the detail gives way first."""
    fixed = [part for part in (*before, *after) if part]
    room = SUBLABEL_COLUMNS - sum(len(part) + 3 for part in fixed)
    detail = " ".join(detail[: LABEL_COLUMNS * 2].split())
    shown = shorten(detail, room) if room > 3 else ""
    return shorten(" · ".join(part for part in (*before, shown, *after) if part), SUBLABEL_COLUMNS)
