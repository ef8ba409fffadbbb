"""Which sessions a list shows: filters as they stand in the address, and the rows they select."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.db.models import Exists, OuterRef, Q

from approvals_app.models import Interrupt
from dexweb.paging import LIMIT, Page, keyset_page, read_limit
from sessions_app.actions import RAISE_SPEND
from sessions_app.models import Agent, Session
from sessions_app.models.sessions import SessionQuerySet
from sessions_app.state_words import PHASE, SESSION

NEWEST = ("-updated_at", "-id")
ROWS_AT_MOST = 100
STATUS_WORDS = {"running": "Running", **{key: state.words for key, state in SESSION.items()}}
PHASE_WORDS = {key: state.words for key, state in PHASE.items()}
FLAGS = {
    "needs_me": "needs my decision",
    "waiting": "waiting for a person",
    "unknown": "with an unknown outcome",
    "turn_failed": "whose last turn failed",
    "mine": "started by me",
}


@dataclass(frozen=True)
class SessionFilters:
    """The filters in force. A value that means nothing is left out, and said in ``ignored``."""

    q: str = ""
    status: str = ""
    phase: str = ""
    agent: str = ""
    flags: frozenset[str] = frozenset()
    limit: int = LIMIT
    ignored: tuple[str, ...] = ()

    @classmethod
    def read(cls, query: Mapping[str, str]) -> "SessionFilters":
        status, phase = query.get("status", ""), query.get("phase", "")
        ignored = [
            f"{name} “{value[:40]}”"
            for name, value, known in (
                ("status", status, STATUS_WORDS),
                ("phase", phase, PHASE_WORDS),
            )
            if value and value not in known
        ]
        return cls(
            q=_plain(query.get("q", "")),
            status=status if status in STATUS_WORDS else "",
            phase=phase if phase in PHASE_WORDS else "",
            agent=_plain(query.get("agent", "")),
            flags=frozenset(name for name in FLAGS if query.get(name) == "1"),
            limit=read_limit(query.get("limit", "")),
            ignored=tuple(ignored),
        )

    def __bool__(self) -> bool:
        return bool(self.q or self.status or self.phase or self.agent or self.flags)

    @property
    def narrowed(self) -> int:
        """How many of the folded fields are set."""
        return sum(map(bool, (self.status, self.phase, self.agent)))

    def query(self, **changes: Any) -> str:
        """The address's query for these filters, from the first page; ``changes`` go over them."""
        values: dict[str, Any] = {
            "q": self.q,
            "status": self.status,
            "phase": self.phase,
            "agent": self.agent,
            **{name: "1" if name in self.flags else "" for name in FLAGS},
            "limit": "" if self.limit == LIMIT else self.limit,
            **changes,
        }
        return urlencode({name: value for name, value in values.items() if value})

    def in_words(self) -> str:
        """The filters as a person would say them; "" when there are none."""
        parts = [
            STATUS_WORDS.get(self.status, "").lower(),
            PHASE_WORDS.get(self.phase, "").lower(),
            *(words for name, words in FLAGS.items() if name in self.flags),
            f"agent {self.agent}" if self.agent else "",
            f"“{self.q}” in title or id" if self.q else "",
        ]
        return ", ".join(part for part in parts if part)

    def select(self, user: Any) -> SessionQuerySet:
        """The sessions under these filters, with what a line of the list shows."""
        rows = Session.objects.for_list()
        if self.status:
            rows = rows.filter(status=self.status)
        if self.phase:
            # An ended session keeps its last phase, which says nothing any more.
            rows = rows.filter(phase=self.phase, status=Session.Status.RUNNING)
        if self.agent:
            rows = rows.filter(agent__name=self.agent)
        if self.q:
            rows = rows.filter(Q(title__icontains=self.q) | Q(id__icontains=self.q))
        return self._flagged(rows, user)

    def _flagged(self, rows: SessionQuerySet, user: Any) -> SessionQuerySet:
        if "waiting" in self.flags:
            rows = rows.filter(Q(waiting__gt=0) | Q(phase=Session.Phase.WAITING_SPEND))
        if "unknown" in self.flags:
            rows = rows.filter(unknown_outcomes__gt=0)
        if "turn_failed" in self.flags:
            rows = rows.with_failed_turn()
        if "mine" in self.flags:
            rows = rows.filter(started_by=user)
        if "needs_me" in self.flags:
            asked = Q(Exists(_for(user).filter(session=OuterRef("pk"))))
            blocked = Q(phase=Session.Phase.WAITING_SPEND, status=Session.Status.RUNNING)
            rows = rows.filter(asked | blocked if user.has_perm(RAISE_SPEND) else asked)
        return rows


def page_of_sessions(filters: SessionFilters, user: Any, cursor: str) -> Page[Session]:
    page = keyset_page(filters.select(user), NEWEST, cursor, filters.limit)
    mark_mine(page.rows, user)
    return page


def mark_mine(sessions: list[Session], user: Any) -> None:
    """Sets ``needs_me`` on each: it waits for what ``user`` may decide, answer or raise. One query."""
    waiting = [session.id for session in sessions if session.waiting]
    found = set(_for(user).filter(session__in=waiting).values_list("session", flat=True))
    raises = user.has_perm(RAISE_SPEND)
    for session in sessions:
        blocked = session.open and session.phase == Session.Phase.WAITING_SPEND
        session.needs_me = session.id in found or (blocked and raises)


def rows_by_id(text: str, filters: SessionFilters | None, user: Any) -> list[Session]:
    """The sessions of a comma-separated list of ids; under ``filters`` where those are given."""
    ids = [session_id for session_id in text.split(",") if session_id][:ROWS_AT_MOST]
    rows = filters.select(user) if filters else Session.objects.for_list()
    found = list(rows.filter(pk__in=[_plain(session_id) for session_id in ids]))
    mark_mine(found, user)
    return found


def agent_names() -> list[str]:
    return list(Agent.objects.values_list("name", flat=True))


def _for(user: Any) -> Any:
    return Interrupt.objects.pending().decidable_by(user)


def _plain(text: str) -> str:
    """Text that every database takes as a value."""
    return text.replace("\0", "").encode(errors="replace").decode().strip()[:200]
