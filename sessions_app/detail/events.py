"""AgentEvents as the Events tab lists them: newest first, a page at a time by number."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from sessions_app.detail.event_words import FAMILIES, state_of_event, words_of
from sessions_app.graph.text import visible
from sessions_app.graph.words import State
from sessions_app.models import AgentEvent, Session

EVENTS_SHOWN = 200
JSON_SHOWN = 600


@dataclass(frozen=True)
class EventLine:
    """One event. `gap_after` names the numbers just below it that are no longer kept."""

    seq: int
    type: str
    step_id: str
    attempt: int
    at: datetime
    state: State
    words: str
    json: str
    cut: bool
    gap_after: str = ""


@dataclass(frozen=True)
class EventPage:
    """`older` is the number to go on before, or None at the beginning of what is kept."""

    lines: list[EventLine]
    older: int | None
    family: str


def page(session: Session, *, before: int | None = None, family: str = "") -> EventPage:
    """The newest events, or those below ``before``; only one family of types if one is named."""
    family = family if family in FAMILIES else ""
    found = _of(session, family)
    if before is not None:
        found = found.filter(seq__lt=before)
    rows = list(found.order_by("-seq")[: EVENTS_SHOWN + 1])
    shown = rows[:EVENTS_SHOWN]
    older = shown[-1].seq if len(rows) > EVENTS_SHOWN else None
    return EventPage(_lines(shown, gaps=not family), older, family)


def newer(session: Session, after: int, family: str = "") -> EventPage:
    """What came after ``after``, newest first, for a list that is open.

    More than a page of it is only its newest page, and `older` then says that the list begins anew.
    """
    family = family if family in FAMILIES else ""
    found = _of(session, family).filter(seq__gt=after)
    rows = list(found.order_by("-seq")[: EVENTS_SHOWN + 1])
    shown = rows[:EVENTS_SHOWN]
    older = shown[-1].seq if len(rows) > EVENTS_SHOWN else None
    return EventPage(_lines(shown, gaps=not family), older, family)


def whole_json(session: Session, seq: int) -> str | None:
    """All of one event as JSON text, or None when it is not kept."""
    event = session.events.filter(seq=seq).first()
    if event is None:
        return None
    whole = {
        "seq": event.seq,
        "type": event.type,
        "step_id": event.step_id,
        "attempt": event.attempt,
        "at": event.at.isoformat(),
        "payload": event.payload,
    }
    return json.dumps(whole, ensure_ascii=False, indent=2)


def _of(session: Session, family: str) -> QuerySet[AgentEvent]:
    events = AgentEvent.objects.filter(session=session)
    return events.filter(type__startswith=f"{family}.") if family else events


def _lines(rows: Sequence[AgentEvent], *, gaps: bool) -> list[EventLine]:
    below = [row.seq for row in rows[1:]] + [row.seq - 1 for row in rows[-1:]]
    return [
        _line(row, _gap(row.seq, next_seq) if gaps else "")
        for row, next_seq in zip(rows, below, strict=True)
    ]


def _gap(seq: int, below: int) -> str:
    if seq - below <= 1:
        return ""
    first, last = below + 1, seq - 1
    return f"{first}" if first == last else f"{first}–{last}"


def _line(event: AgentEvent, gap: str) -> EventLine:
    text = json.dumps(event.payload, ensure_ascii=False)
    return EventLine(
        seq=event.seq,
        type=event.type,
        step_id=event.step_id,
        attempt=event.attempt,
        at=event.at,
        state=state_of_event(event.type),
        words=words_of(event.type, event.payload),
        json=visible(text[:JSON_SHOWN]),
        cut=len(text) > JSON_SHOWN,
        gap_after=gap,
    )
