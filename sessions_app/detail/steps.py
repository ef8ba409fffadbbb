"""One Step in full, as the panel at the side shows it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models.functions import Left, Length

from approvals_app.models import Interrupt
from sessions_app.conversation import tool_words
from sessions_app.detail.event_words import words_of
from sessions_app.detail.turns import graph_step
from sessions_app.detail.words import EFFECT_WORDS, TYPE_WORDS
from sessions_app.graph.words import State, duration_words, state_of
from sessions_app.models import Session, Step, ToolCall
from sessions_app.state_words import step_words

VALUE_SHOWN = 16 * 1024
# What the raw download offers, and where it is kept.
RAW_OF_STEP = {"text": "text", "reasoning": "reasoning", "response": "response", "detail": "detail"}
RAW_OF_CALL = {"args": "args", "result": "result", "words": "words"}
CALLS_LISTED = 50
RAISES_LISTED = 10


@dataclass(frozen=True)
class Value:
    """The first characters of a text; `size` counts all, `what` names it for the download."""

    what: str
    title: str
    shown: str
    size: int
    prose: bool = False

    @property
    def cut(self) -> bool:
        return self.size > len(self.shown)


@dataclass(frozen=True)
class AskedCall:
    """A call that a model Step asked for."""

    call_id: str
    tool: str
    outcome: str


@dataclass(frozen=True)
class StepPanel:
    """Everything about one Step. `times` are (name, moment) pairs; a moment may be missing."""

    step: Step
    title: str
    about: str
    state: State
    words: str
    time: str
    waited: str
    effect: str
    decided: str
    times: list[tuple[str, datetime]]
    values: list[Value]
    asked: list[AskedCall]
    siblings: list[Step]
    call: ToolCall | None
    interrupt: Interrupt | None
    until: datetime | None
    #: Who let it go on while it waited for spend, in words.
    raised: list[str]

    @property
    def open(self) -> bool:
        """Whether the Step runs or waits."""
        return _is_open(self.step)


def panel(session: Session, step_id: str, now: datetime) -> StepPanel | None:
    """The Step with this id, or None. Four queries at most, whatever it holds."""
    step = (
        session.steps.filter(step_id=step_id)
        .defer("text", "reasoning", "response")
        .annotate(**_starts("text", "reasoning"))
        .first()
    )
    if step is None:
        return None
    call = _call(session, step)
    interrupt = _interrupt(session, step)
    asked = _asked(session, step)
    return StepPanel(
        step=step,
        title=tool_words(step.tool) or TYPE_WORDS.get(step.type, step.type),
        about=TYPE_WORDS.get(step.type, step.type) if step.tool else "",
        state=state_of(graph_step(step)),
        words=step_words(step).words,
        time=_span(step.started_at, step.ended_at or (now if _is_open(step) else None)),
        waited=_span(step.scheduled_at, step.started_at),
        effect=_effect(step, call),
        decided=_decided(step, asked),
        times=_times(step),
        values=_values(step, call),
        asked=asked[:CALLS_LISTED],
        siblings=_siblings(session, step),
        call=call,
        interrupt=interrupt,
        until=_until(step, call),
        raised=_raised(session, step),
    )


def raw(session: Session, step_id: str, what: str) -> str | None:
    """One value of a Step in full, as text; None when there is no such Step or value."""
    step = (
        session.steps.filter(step_id=step_id)
        .only("session_id", "call_id", *RAW_OF_STEP.values())
        .first()
    )
    if step is None:
        return None
    if what in RAW_OF_STEP:
        return _as_text(getattr(step, RAW_OF_STEP[what]))
    if what in RAW_OF_CALL and step.call_id:
        field = RAW_OF_CALL[what]
        call = session.calls.filter(call_id=step.call_id).only("session_id", field).first()
        return getattr(call, field) if call else None
    return None


def _as_text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, indent=2)


def _starts(*names: str) -> dict[str, Any]:
    starts = {f"{name}_start": Left(name, VALUE_SHOWN) for name in names}
    sizes = {f"{name}_size": Length(name) for name in names}
    return {**starts, **sizes}


def _call(session: Session, step: Step) -> ToolCall | None:
    if not step.call_id:
        return None
    return (
        session.calls.filter(call_id=step.call_id)
        .select_related("child__agent")
        .defer("args", "result", "words")
        .annotate(**_starts("args", "result", "words"))
        .first()
    )


def _interrupt(session: Session, step: Step) -> Interrupt | None:
    if step.type not in ("AwaitToolApproval", "AwaitAnswer"):
        return None
    return Interrupt.objects.for_list().filter(session=session, step_id=step.step_id).first()


def _effect(step: Step, call: ToolCall | None) -> str:
    """What the call does to the world; a wait does nothing to it."""
    if call is None or step.type in ("AwaitAnswer", "DurableWait"):
        return ""
    return EFFECT_WORDS.get(call.effect, call.effect)


def _raised(session: Session, step: Step) -> list[str]:
    if step.type != "AwaitSpend" or step.started_at is None:
        return []
    given = session.events.filter(type="spend.raised", step_id="", at__gte=step.started_at)
    if step.ended_at:
        given = given.filter(at__lte=step.ended_at)
    return [words_of(event.type, event.payload) for event in given.order_by("-seq")[:RAISES_LISTED]]


def _until(step: Step, call: ToolCall | None) -> datetime | None:
    """When an open timer fires."""
    if step.type != "DurableWait" or step.status != Step.Status.WAITING or call is None:
        return None
    return datetime.fromisoformat(call.policy["until"])


def _asked(session: Session, step: Step) -> list[AskedCall]:
    if step.type != "RunModel":
        return []
    rows = session.calls.filter(model_step=step.step_id).order_by("position")
    return [
        AskedCall(call_id, tool_words(tool), outcome)
        for call_id, tool, outcome in rows.values_list("call_id", "tool", "outcome")
    ]


def _siblings(session: Session, step: Step) -> list[Step]:
    """The other Steps of the same call: its approval, its run, the record of its failure."""
    if not step.call_id:
        return []
    others = session.steps.filter(call_id=step.call_id).exclude(step_id=step.step_id)
    return list(others.only("session_id", "step_id", "type").order_by("position"))


def _decided(step: Step, asked: list[AskedCall]) -> str:
    if step.type != "RunModel" or step.status != Step.Status.COMPLETED:
        return ""
    if not asked:
        return "Answered"
    return "Asked for 1 tool call" if len(asked) == 1 else f"Asked for {len(asked)} tool calls"


def _values(step: Step, call: ToolCall | None) -> list[Value]:
    values = []
    if call is not None:
        values.append(Value("args", "Arguments", call.args_start, call.args_size))
        if step.type != "AwaitToolApproval":
            values.append(Value("result", "Result", call.result_start, call.result_size))
            values.append(
                Value("words", "What the model was told", call.words_start, call.words_size)
            )
    values.append(Value("text", "What the model said", step.text_start, step.text_size, prose=True))
    values.append(Value("reasoning", "Reasoning", step.reasoning_start, step.reasoning_size))
    shown = [value for value in values if value.size]
    told = {value.shown for value in shown if value.what == "result"} | {step.detail}
    # The same words twice tell nothing more.
    return [value for value in shown if value.what != "words" or value.shown not in told]


def _times(step: Step) -> list[tuple[str, datetime]]:
    # A retry is scheduled anew, while the Step keeps the time of its first start.
    scheduled = f"Attempt {step.attempt} scheduled" if _is_retry(step) else "Scheduled"
    moments = [
        (scheduled, step.scheduled_at),
        ("Started", step.started_at),
        ("Next attempt", step.next_attempt_at if _is_open(step) else None),
        ("Ended", step.ended_at),
    ]
    known = [(name, at) for name, at in moments if at]
    return sorted(known, key=lambda moment: moment[1])


def _is_retry(step: Step) -> bool:
    return bool(step.scheduled_at and step.started_at and step.started_at < step.scheduled_at)


def _is_open(step: Step) -> bool:
    return step.status in (Step.Status.ACTIVE, Step.Status.WAITING, Step.Status.SCHEDULED)


def _span(start: datetime | None, end: datetime | None) -> str:
    if start is None or end is None or end < start:
        return ""
    return duration_words(end - start) if end - start > timedelta(0) else ""
