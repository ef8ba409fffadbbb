"""How budgets stand and what today cost, for the page and the API. Every read is bounded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal

from django.db.models import QuerySet, Sum
from django.utils import timezone

from sessions_app.models import (
    ModelPrice,
    Session,
    SpendBudget,
    SpendDay,
    SpendReservation,
    UnpricedModel,
)
from sessions_app.models.spend import today_of
from sessions_app.spend.budgets import (
    Counted,
    counting,
    known_and_reserved,
    spent_of,
    used_of_raise,
)
from sessions_app.spend.words import budget_words

BUDGETS_AT_MOST = 50
#: Of a budget that counts each session, agent or user for itself: those that spent most.
SUMS_AT_MOST = 5
LINES_AT_MOST = 10


@dataclass(frozen=True)
class OneSum:
    """One sum of a budget; ``who`` is empty where all count together."""

    who: str
    session_id: str
    spent: Decimal
    reserved: Decimal
    limit: Decimal

    @property
    def used_up(self) -> bool:
        return self.spent >= self.limit

    @property
    def share(self) -> float:
        """Of the limit, from 0 to 1."""
        return min(1.0, float(self.spent / self.limit)) if self.limit else 1.0


@dataclass(frozen=True)
class BudgetState:
    budget: SpendBudget
    words: str
    since: date | None
    until: date | None
    sums: list[OneSum]


@dataclass(frozen=True)
class Line:
    """What one agent, user or session has spent today."""

    who: str
    session_id: str
    spent: Decimal
    share: float


def budget_states(limit: int = BUDGETS_AT_MOST) -> list[BudgetState]:
    """Every budget in force, with its highest sums."""
    today = today_of(timezone.now())
    rows = SpendBudget.objects.filter(enabled=True).select_related("agent", "user")[:limit]
    return [
        BudgetState(
            budget,
            budget_words(budget),
            budget.since(today),
            budget.until(today),
            [*_sums(budget, today)],
        )
        for budget in rows
    ]


_NAMES = {
    SpendBudget.Scope.SESSION: ("session", "session__title"),
    SpendBudget.Scope.AGENT: ("agent", "agent__name"),
    SpendBudget.Scope.USER: ("user", "user__username"),
}


def _sums(budget: SpendBudget, today: date) -> Iterator[OneSum]:
    """The highest sums of a budget, in two queries; what is only reserved does not order them."""
    if budget.scope == SpendBudget.Scope.ALL:
        known, reserved = known_and_reserved(budget, Counted(), today)
        yield OneSum("", "", known + reserved, reserved, budget.amount)
        return
    key, name = _NAMES[SpendBudget.Scope(budget.scope)]
    rows = counting(SpendDay.objects.filter(session__isnull=False), budget, None, today)
    sums = rows.values(key, name).annotate(total=Sum("spent")).order_by("-total")[:SUMS_AT_MOST]
    held = counting(SpendReservation.objects.all(), budget, None, today)
    held = held.filter(**{f"{key}__in": [row[key] for row in sums]})
    amounts = dict(held.values_list(key).annotate(total=Sum("amount")).order_by())
    for row in sums:
        reserved = amounts.get(row[key]) or Decimal(0)
        session_id = row[key] if key == "session" else ""
        who = row[name] or "(gone)"
        yield OneSum(who, session_id, row["total"] + reserved, reserved, budget.amount)


def spent_today() -> tuple[Decimal, dict[str, list[Line]]]:
    """All of today's spend (UTC), and who spent most of it: agents, users, sessions."""
    rows = SpendDay.objects.filter(day=today_of(timezone.now()))
    total = rows.aggregate(total=Sum("spent"))["total"] or Decimal(0)
    return total, {key: _lines(rows, key, name, total) for key, name in _NAMES.values()}


def _lines(rows: QuerySet[SpendDay], key: str, name: str, total: Decimal) -> list[Line]:
    sums = rows.values(key, name).annotate(total=Sum("spent")).order_by("-total")
    return [
        Line(
            row[name] or "(gone)",
            (row[key] or "") if key == "session" else "",
            row["total"],
            float(row["total"] / total) if total else 0.0,
        )
        for row in sums[:LINES_AT_MOST]
    ]


def unpriced() -> list[UnpricedModel]:
    """Models that were called at an unknown price, the newest first; not those that have one now."""
    prices = list(ModelPrice.objects.filter(valid_from__lte=timezone.now()))
    rows = UnpricedModel.objects.select_related("last_session")[: LINES_AT_MOST * 2]
    return [row for row in rows if not any(price.fits(row.model) for price in prices)][
        :LINES_AT_MOST
    ]


def in_doubt() -> tuple[int, Decimal]:
    """Calls whose cost never became known and that count with their estimate: how many, how much."""
    hour_ago = timezone.now() - timedelta(hours=1)
    rows = SpendReservation.objects.filter(day=today_of(timezone.now()), at__lt=hour_ago)
    return rows.count(), rows.aggregate(total=Sum("amount"))["total"] or Decimal(0)


def limit_of(session: Session) -> tuple[Decimal, Decimal] | None:
    """(spent, limit) of the tightest budget that counts this session for itself, its raises
    included; None when there is none.

    A raise comes on top of what was spent when it was given, even where that was over the budget.
    """
    budgets = SpendBudget.objects.in_force(session.agent_id, session.started_by_id)
    today = today_of(timezone.now())
    own = [
        (spent_of(budget, Counted(session=session.pk), today), budget.amount)
        for budget in budgets.filter(scope=SpendBudget.Scope.SESSION)
    ]
    if not own:
        return None
    spent, limit = min(own, key=lambda pair: pair[1] - pair[0])
    if not session.spend_raised:
        return spent, limit
    beyond = max(Decimal(0), spent - used_of_raise(session.pk) - limit)
    return spent, limit + beyond + session.spend_raised
