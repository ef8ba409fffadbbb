"""Reading AgentEvents after a cursor: one way for the socket, the tail and REST.

Numbers have no gaps at commit and commit in order, so what is missing between two numbers of one
read was trimmed, never lost or late.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from django.urls import reverse

from dexweb.engine.errors import DexwebError, SessionNotFound
from sessions_app.models import AgentEvent, Session

PAGE_EVENTS = 512
PAGE_BYTES = 1024 * 1024
# Rows fetched at once: bounds what a page of the largest events holds before it is cut by bytes.
_CHUNK = 128
_FIELDS = ("seq", "type", "step_id", "attempt", "payload", "at")


@dataclass
class EventsGone(DexwebError):
    """The events after this number cannot be given; start again from the snapshot.

    ``reason`` is "trimmed" (older than what is kept) or "ahead" (no such event was ever sent).
    """

    session_id: str = ""
    after: int = 0
    reason: str = "trimmed"
    last_seq: int = 0
    retained_from: int = 1
    code: ClassVar[str] = "events_gone"
    status: ClassVar[int] = 410
    title: ClassVar[str] = "These events are no longer kept"

    @property
    def message(self) -> str:
        if self.reason == "ahead":
            return (
                f"This session has no event {self.after}. Load its snapshot and go on from there."
            )
        return (
            f"Events before {self.retained_from} are no longer kept. "
            "Load the session's snapshot and go on from there."
        )

    @property
    def snapshot(self) -> str:
        return reverse("api-snapshot", args=[self.session_id])

    def details(self) -> dict[str, Any]:
        return {**super().details(), "snapshot": self.snapshot}


class Position(NamedTuple):
    """The newest event's number, and the oldest that is kept."""

    last_seq: int
    retained_from: int


class Item(NamedTuple):
    """An event as JSON text. An empty text stands for "nothing is kept up to this number"."""

    seq: int
    text: str

    @property
    def size(self) -> int:
        return len(self.text)  # ASCII only, so characters are bytes


@dataclass(frozen=True)
class EventPage:
    """``events`` in order; ``trimmed`` are ranges [first, last] that are no longer kept.

    ``more`` says that events after the last one here were already there.
    """

    events: list[dict[str, Any]]
    trimmed: list[list[int]]
    last_seq: int
    retained_from: int
    more: bool


def position(session_id: str) -> Position:
    """Where a session's stream stands now. Raises `SessionNotFound`."""
    row = Session.objects.filter(pk=session_id).values_list("last_seq", "retained_from").first()
    if row is None:
        raise SessionNotFound(session_id=session_id)
    return Position(*row)


def events_after(
    session_id: str, after: int, limit: int = PAGE_EVENTS, max_bytes: int = PAGE_BYTES
) -> EventPage:
    """The events numbered above ``after``, each {seq, type, step_id, attempt, payload, at}.

    Gives at most ``limit`` events or ``max_bytes`` of JSON, but always one if there is one.
    Raises `SessionNotFound`, and `EventsGone` when ``after`` is older than what is kept or above
    the newest number.
    """
    where = _checked(session_id, after)
    events = [event for event, _ in _read(session_id, after, limit, max_bytes)]
    seen = [event["seq"] for event in events]
    newest = max([where.last_seq, *seen[-1:]])
    more = bool(seen) and seen[-1] < newest
    trimmed = gaps(after, seen if more else [*seen, newest + 1])
    return EventPage(events, trimmed, newest, where.retained_from, more)


def items_after(session_id: str, after: int, limit: int, max_bytes: int) -> list[Item]:
    """The same as `events_after`, rendered; ends with an empty item if the last were trimmed."""
    return items_up_to(session_id, after, _checked(session_id, after).last_seq, limit, max_bytes)


def items_up_to(
    session_id: str, after: int, last_seq: int, limit: int, max_bytes: int
) -> list[Item]:
    """`items_after` for who has just read ``last_seq``: all up to it is committed."""
    items = [Item(event["seq"], text) for event, text in _read(session_id, after, limit, max_bytes)]
    if not items and after < last_seq:
        return [Item(last_seq, "")]
    return items


def gaps(after: int, numbers: Iterable[int]) -> list[list[int]]:
    """The ranges [first, last] above ``after`` that rising ``numbers`` leave out."""
    left_out = []
    for number in numbers:
        if number > after + 1:
            left_out.append([after + 1, number - 1])
        after = number
    return left_out


def _checked(session_id: str, after: int) -> Position:
    where = position(session_id)
    reason = ""
    if after + 1 < where.retained_from:
        reason = "trimmed"
    elif after > where.last_seq:
        reason = "ahead"
    if reason:
        raise EventsGone(session_id, after, reason, where.last_seq, where.retained_from)
    return where


def _read(
    session_id: str, after: int, limit: int, max_bytes: int
) -> Iterator[tuple[dict[str, Any], str]]:
    """Events with their JSON text, in order, until one of the two bounds is reached."""
    room = max_bytes
    while limit > 0:
        count = min(limit, _CHUNK)
        rows = list(
            AgentEvent.objects.filter(session_id=session_id, seq__gt=after)
            .order_by("seq")
            .values(*_FIELDS)[:count]
        )
        for row in rows:
            row["at"] = row["at"].isoformat()
            text = json.dumps(row, separators=(",", ":"))
            if len(text) > room and room < max_bytes:
                return
            room -= len(text)
            yield row, text
        if len(rows) < count:
            return
        limit -= count
        after = rows[-1]["seq"]
