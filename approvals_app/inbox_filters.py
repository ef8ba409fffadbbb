"""Which approvals the inbox shows: filters as they stand in the address, and the rows they select."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

from django.db.models import Q
from django.utils import timezone

from approvals_app.models import Interrupt
from dexweb.paging import LIMIT, read_limit

State = Interrupt.State
STATES = {
    "pending": "Pending",
    "decided": "Decided",
    **{state.value: state.label for state in State if state != State.PENDING},
    "all": "All",
}
RISKS = {"high": "High", "medium": "Medium", "low": "Low"}
DEADLINES = {"5m": "Within 5 min", "1h": "Within 1 h", "today": "Today"}
HOLDERS = {"me": "By me", "others": "By somebody else", "nobody": "By nobody"}
QUICK = (
    ("For me", {"mine": "1"}),
    ("High risk", {"risk": "high"}),
    ("Within 5 min", {"deadline": "5m"}),
    ("Held by me", {"held": "me"}),
)


@dataclass(frozen=True)
class ApprovalFilters:
    """The filters in force. A value that means nothing is left out, and said in ``ignored``."""

    state: str = "pending"
    q: str = ""
    agent: str = ""
    tool: str = ""
    risk: str = ""
    deadline: str = ""
    held: str = ""
    mine: bool = False
    limit: int = LIMIT
    ignored: tuple[str, ...] = ()

    @classmethod
    def read(cls, query: Mapping[str, str]) -> "ApprovalFilters":
        known = {"state": STATES, "risk": RISKS, "deadline": DEADLINES, "held": HOLDERS}
        given = {name: query.get(name, "") for name in known}
        chosen = {name: value for name, value in given.items() if value in known[name]}
        return cls(
            **{"state": "pending", **chosen},
            q=_plain(query.get("q", "")),
            agent=_plain(query.get("agent", "")),
            tool=_plain(query.get("tool", "")),
            mine=query.get("mine") == "1",
            limit=read_limit(query.get("limit", "")),
            ignored=tuple(
                f"{name} “{_plain(value)[:40]}”"
                for name, value in given.items()
                if value and name not in chosen
            ),
        )

    def __bool__(self) -> bool:
        """Whether anything beside the state is asked for."""
        return bool(self.q or self.narrowed or self.mine)

    @property
    def narrowed(self) -> int:
        """How many of the folded fields are set."""
        return sum(map(bool, (self.agent, self.tool, self.risk, self.deadline, self.held)))

    def query(self, **changes: Any) -> str:
        """The address's query for these filters, from the first page; ``changes`` go over them."""
        values: dict[str, Any] = {
            "state": self.state,
            "q": self.q,
            "agent": self.agent,
            "tool": self.tool,
            "risk": self.risk,
            "deadline": self.deadline,
            "held": self.held,
            "mine": "1" if self.mine else "",
            "limit": "" if self.limit == LIMIT else self.limit,
            **changes,
        }
        values["state"] = "" if values["state"] == "pending" else values["state"]
        return urlencode({name: value for name, value in values.items() if value})

    def in_words(self) -> str:
        """The filters as a person would say them; "" when there are none."""
        parts = [
            "for me" if self.mine else "",
            f"{self.risk} risk" if self.risk else "",
            f"due {DEADLINES[self.deadline].lower()}" if self.deadline else "",
            f"held {HOLDERS[self.held].lower()}" if self.held else "",
            f"tool {self.tool}" if self.tool else "",
            f"agent {self.agent}" if self.agent else "",
            f"“{self.q}” in the call, its reason or its session" if self.q else "",
        ]
        return ", ".join(part for part in parts if part)

    def select(self, rows: Any, viewer: Any) -> Any:
        """Those of ``rows``, ranked for ``viewer``, that these filters let through."""
        if self.state == "decided":
            rows = rows.exclude(state=State.PENDING).filter(decided_at__isnull=False)
        elif self.state != "all":
            rows = rows.filter(state=self.state)
        if self.mine:
            rows = rows.filter(rank=0)
        if self.agent:
            rows = rows.filter(session__agent__name=self.agent)
        if self.tool:
            rows = rows.filter(tool=self.tool)
        if self.risk:
            rows = rows.filter(risk=self.risk)
        if self.deadline:
            rows = rows.filter(deadline__gt=timezone.now(), deadline__lte=_until(self.deadline))
        if self.held:
            rows = _held(rows, self.held, viewer)
        return rows.filter(_holding(self.q)) if self.q else rows


def _until(deadline: str) -> Any:
    now = timezone.localtime()
    if deadline == "today":
        return now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    return now + {"5m": timedelta(minutes=5), "1h": timedelta(hours=1)}[deadline]


def _held(rows: Any, who: str, viewer: Any) -> Any:
    held = Q(hold_until__gt=timezone.now())
    if who == "nobody":
        return rows.filter(Q(hold_until__isnull=True) | ~held)
    mine = Q(hold_by=viewer.pk)
    return rows.filter(held & mine if who == "me" else held & ~mine)


def _holding(text: str) -> Q:
    """Where the text stands in what was asked, who decided and why, or the session."""
    found = Q()
    for name in ("id", "tool", "args", "why", "reason", "decided_by_name", "session__title"):
        found |= Q(**{f"{name}__icontains": text})
    return found | Q(session_id=text)


def _plain(text: str) -> str:
    """Text that every database takes as a value."""
    return text.replace("\0", "").encode(errors="replace").decode().strip()[:200]
