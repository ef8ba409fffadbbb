"""Steps against time, turn by turn, newest turn first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby

from sessions_app.conversation import tool_words
from sessions_app.detail.turns import graph_step
from sessions_app.graph.words import State, duration_words, state_of
from sessions_app.models import Session, Step
from sessions_app.state_words import step_words

STEPS_SHOWN = 200
WIDTH = 1000
SHORTEST = 5


@dataclass(frozen=True)
class Bar:
    """A Step's stretch of its turn, in thousandths: `waited` before it began, then `ran`."""

    waited_from: int
    waited: int
    ran_from: int
    ran: int


@dataclass(frozen=True)
class TimelineStep:
    step_id: str
    name: str
    state: State
    words: str
    began: datetime | None
    time: str
    bar: Bar | None


@dataclass(frozen=True)
class TimelineTurn:
    number: int
    began: datetime | None
    time: str
    steps: list[TimelineStep]


@dataclass(frozen=True)
class Timeline:
    """`older` is the position to go on before, or None at the beginning."""

    turns: list[TimelineTurn]
    older: int | None


def page(session: Session, now: datetime, *, before: int | None = None) -> Timeline:
    """The newest Steps, or those before a position."""
    rows = session.steps.defer("text", "reasoning", "response").order_by("-position")
    if before is not None:
        rows = rows.filter(position__lt=before)
    found = list(rows[: STEPS_SHOWN + 1])
    shown = found[:STEPS_SHOWN]
    older = shown[-1].position if len(found) > STEPS_SHOWN else None
    turns = [
        _turn(number, list(steps)[::-1], now)
        for number, steps in groupby(shown, key=lambda step: step.turn)
    ]
    return Timeline(turns, older)


def _turn(number: int, steps: Sequence[Step], now: datetime) -> TimelineTurn:
    # Waiting for a message may take days: it is told in words and does not squeeze the rest.
    told = [step for step in steps if step.type != "AwaitMessage"]
    starts = [at for step in told if (at := step.scheduled_at or step.started_at)]
    began = min(starts, default=None)
    ended = max((_end(step, now) for step in told), default=now)
    span = ended - began if began else None
    return TimelineTurn(
        number=number,
        began=began,
        time=duration_words(span) if span else "",
        steps=[_step(step, began, span, now) for step in steps],
    )


def _step(
    step: Step, origin: datetime | None, span: timedelta | None, now: datetime
) -> TimelineStep:
    began = step.started_at or step.scheduled_at
    drawn = began is not None and step.type != "AwaitMessage"
    return TimelineStep(
        step_id=step.step_id,
        name=tool_words(step.tool) or step.step_id,
        state=state_of(graph_step(step)),
        words=step_words(step).words,
        began=began,
        time=duration_words(_end(step, now) - began) if began else "",
        bar=_bar(step, origin, span, now) if origin and span and drawn else None,
    )


def _bar(step: Step, origin: datetime, span: timedelta, now: datetime) -> Bar:
    scheduled = step.scheduled_at or step.started_at or origin
    started = step.started_at or _end(step, now)
    at = [_thousandths(moment - origin, span) for moment in (scheduled, started, _end(step, now))]
    ran = max(at[2] - at[1], SHORTEST)
    ran_from = min(at[1], WIDTH - ran)
    return Bar(at[0], max(ran_from - at[0], 0), ran_from, ran)


def _thousandths(part: timedelta, span: timedelta) -> int:
    return round(min(max(part / span, 0.0), 1.0) * WIDTH) if span else 0


def _end(step: Step, now: datetime) -> datetime:
    """Where a Step ends: its own end, now while it is open, its start if it never went on."""
    if step.ended_at:
        return step.ended_at
    began = step.started_at or step.scheduled_at
    if step.status in (Step.Status.ACTIVE, Step.Status.WAITING, Step.Status.SCHEDULED):
        return max(now, began or now)
    return began or now
