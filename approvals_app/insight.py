"""How approvals are decided: how fast, how, by tool and by person; and where nobody seems to look."""

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from approvals_app.models import Decision, Interrupt

PERIODS = (7, 30, 90)
#: Read at most, newest first; the page says when there were more.
AT_MOST = 20_000
#: As many approvals as make a habit, and the median below which nobody can have read them.
HABIT = 20
TOO_FAST = 2.0
DECIDED = (Interrupt.State.APPROVED, Interrupt.State.REJECTED, Interrupt.State.INVALIDATED)


@dataclass
class Figures:
    """Counts of what ended, and how long people took, in seconds, sorted."""

    name: str
    approved: int = 0
    rejected: int = 0
    expired: int = 0
    other: int = 0
    edited: int = 0
    seconds: list[float] = field(default_factory=list)

    @property
    def total(self) -> int:
        return self.approved + self.rejected + self.expired + self.other

    @property
    def median(self) -> float | None:
        return percentile(self.seconds, 0.5)

    @property
    def p90(self) -> float | None:
        return percentile(self.seconds, 0.9)

    @property
    def hasty(self) -> bool:
        """Approves much, and half of it faster than it can be read."""
        median = self.median
        return self.approved >= HABIT and median is not None and median < TOO_FAST

    def share(self, count: int) -> float:
        return count / self.total if self.total else 0.0


@dataclass(frozen=True)
class Insight:
    """``truncated``: only the newest were read. ``people`` is empty where nobody's may be seen."""

    days: int
    overall: Figures
    tools: list[Figures]
    people: list[Figures]
    truncated: bool


def insight(days: int, only_person: int | None = None) -> Insight:
    """The figures of the last ``days``, in two queries; ``only_person`` limits people to one id."""
    since = timezone.now() - timedelta(days=days)
    ended = _ended(since)
    said = _said(since, only_person)
    overall = Figures("All")
    tools: dict[Hashable, Figures] = {}
    for row in ended[:AT_MOST]:
        tool = tools.setdefault(row["tool"], Figures(row["tool"]))
        for figures in (overall, tool):
            _count(figures, row)
    return Insight(
        days=days,
        overall=_sorted([overall])[0],
        tools=_sorted(tools.values()),
        people=_sorted(_people(said[:AT_MOST])),
        truncated=max(len(ended), len(said)) > AT_MOST,
    )


def percentile(values: Sequence[float], part: float) -> float | None:
    """Of sorted ``values``, by the nearest rank; None of none."""
    if not values:
        return None
    return values[max(0, math.ceil(part * len(values)) - 1)]


def _ended(since: datetime) -> list[dict[str, Any]]:
    rows = Interrupt.objects.filter(kind=Interrupt.Kind.APPROVAL, decided_at__gte=since)
    names = ("tool", "state", "asked_at", "decided_at", "edited_by_name")
    return list(rows.order_by("-decided_at").values(*names)[: AT_MOST + 1])


def _said(since: datetime, only_person: int | None) -> list[dict[str, Any]]:
    """Each person's own word: of several who were needed, each took their own time."""
    rows = Decision.objects.filter(state=Decision.State.DELIVERED, created_at__gte=since)
    if only_person is not None:
        rows = rows.filter(actor=only_person)
    names = ("actor__username", "verdict", "created_at", "interrupt__asked_at", "edited_args")
    return list(rows.order_by("-created_at").values(*names)[: AT_MOST + 1])


def _count(figures: Figures, row: dict[str, Any]) -> None:
    state = row["state"]
    name = state if state in ("approved", "rejected", "expired") else "other"
    setattr(figures, name, getattr(figures, name) + 1)
    figures.edited += bool(row["edited_by_name"])
    if state in DECIDED:
        figures.seconds.append(_between(row["asked_at"], row["decided_at"]))


def _people(rows: Iterable[dict[str, Any]]) -> Iterable[Figures]:
    people: dict[str, Figures] = defaultdict(lambda: Figures(""))
    for row in rows:
        figures = people[row["actor__username"]]
        figures.name = row["actor__username"]
        if row["verdict"] == Decision.Verdict.APPROVE:
            figures.approved += 1
        else:
            figures.rejected += 1
        figures.edited += bool(row["edited_args"])
        figures.seconds.append(_between(row["interrupt__asked_at"], row["created_at"]))
    return people.values()


def _between(start: datetime, end: datetime) -> float:
    return max(0.0, (end - start).total_seconds())


def _sorted(rows: Iterable[Figures]) -> list[Figures]:
    """The most first; and each one's times in order."""
    found = sorted(rows, key=lambda figures: (-figures.total, figures.name))
    for figures in found:
        figures.seconds.sort()
    return found
