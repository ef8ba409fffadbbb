"""The built-in limit: budgets in our database, with reservations.

A budget lets a call through as long as what is spent and reserved is below its amount; so sessions
that ask at the same time overrun it by one call each at most. Who asks or settles holds the rows of
the budgets that the call counts for, always locked in the same order.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import F, QuerySet, Sum
from django.utils import timezone

from sessions_app.models import SpendBudget, SpendDay, SpendReservation, UnpricedModel
from sessions_app.models.spend import today_of
from sessions_app.spend.limit import Admitted, ModelCallAsked, Refused, Reservation
from sessions_app.spend.words import refused_words, unpriced_words

NOTHING = Decimal(0)
MICRO = Decimal("0.000001")


@dataclass(frozen=True)
class Counted:
    """What a budget counts: the key of one session, agent or user, or none when all count together."""

    session: str | None = None
    agent: int | None = None
    user: int | None = None


class Budgets:
    """`ModelSpendLimit` over `SpendBudget`."""

    def admit(self, call: ModelCallAsked) -> Admitted | Refused:
        now = timezone.now()
        with transaction.atomic(savepoint=False):
            budgets = _locked(call)
            free = call.estimate is not None and call.estimate == 0
            if not budgets or free:
                return Admitted(Reservation(call, now, kept=False))
            refused = self._unpriced(call, budgets) or self._used_up(call, budgets, now)
            over = False
            if refused and refused.reason == "used_up" and _left_of_raise(call) > 0:
                refused, over = None, True
            if refused:
                return refused
            if call.estimate is None:
                return Admitted(Reservation(call, now, kept=False, over=over))
            _reserve(call, now, over)
            return Admitted(Reservation(call, now, kept=True, over=over))

    def settle(self, reservation: Reservation, cost: Decimal | None) -> None:
        call = reservation.call
        with transaction.atomic(savepoint=False):
            if reservation.kept:
                _locked(call)
                if cost is None:
                    cost = call.estimate
                _reservation_of(call).delete()
            if cost is None:
                _tell_unpriced(call)
            elif cost:
                _count(reservation, cost)

    def _unpriced(self, call: ModelCallAsked, budgets: list[SpendBudget]) -> Refused | None:
        """The first budget that stops calls of unknown price, if this is one."""
        strict = [budget for budget in budgets if not budget.allow_unknown]
        if call.estimate is not None or not strict:
            return None
        budget = strict[0]
        spent = spent_of(budget, counted_for(budget, call), today_of(timezone.now()))
        words = unpriced_words(call.model, budget.name)
        return Refused("unknown_price", words, budget.name, spent, budget.amount)

    def _used_up(
        self, call: ModelCallAsked, budgets: list[SpendBudget], now: datetime
    ) -> Refused | None:
        """The first budget that is used up."""
        today = today_of(now)
        for budget in budgets:
            spent = spent_of(budget, counted_for(budget, call), today)
            if spent < budget.amount:
                continue
            ends = budget.until(today)
            until = datetime.combine(ends, time(), UTC) if ends else None
            words = refused_words(budget, spent)
            return Refused("used_up", words, budget.name, spent, budget.amount, until)
        return None


def counted_for(budget: SpendBudget, call: ModelCallAsked) -> Counted:
    """Whose sum of ``budget`` the call is part of."""
    if budget.scope == SpendBudget.Scope.SESSION:
        return Counted(session=call.session_id)
    if budget.scope == SpendBudget.Scope.AGENT:
        return Counted(agent=call.agent)
    if budget.scope == SpendBudget.Scope.USER:
        return Counted(user=call.user)
    return Counted()


def spent_of(budget: SpendBudget, counted: Counted, today: date) -> Decimal:
    """What counts for ``budget`` in its period that ``today`` is in, reserved amounts included."""
    return sum(known_and_reserved(budget, counted, today), NOTHING)


def known_and_reserved(
    budget: SpendBudget, counted: Counted, today: date
) -> tuple[Decimal, Decimal]:
    """The two parts of `spent_of`: what calls cost, and what others may cost or have cost."""
    known = counting(SpendDay.objects.all(), budget, counted, today)
    reserved = counting(SpendReservation.objects.all(), budget, counted, today)
    return _sum(known, "spent"), _sum(reserved, "amount")


def counting(
    rows: QuerySet[Any], budget: SpendBudget, counted: Counted | None, today: date
) -> QuerySet[Any]:
    """Those of ``rows`` that count for ``budget``: of one sum of it, or (None) of all."""
    since = budget.since(today)
    if since is not None:
        rows = rows.filter(day__gte=since)
    if budget.agent_id:
        rows = rows.filter(agent=budget.agent_id)
    if budget.user_id:
        rows = rows.filter(user=budget.user_id)
    if counted is None or budget.scope == SpendBudget.Scope.ALL:
        return rows
    return rows.filter(**{budget.scope: getattr(counted, budget.scope)})


def _sum(rows: QuerySet[Any], field: str) -> Decimal:
    total: Decimal | None = rows.aggregate(total=Sum(field))["total"]
    # SQLite adds decimals as floats.
    return (total or NOTHING).quantize(MICRO)


def _locked(call: ModelCallAsked) -> list[SpendBudget]:
    return list(SpendBudget.objects.in_force(call.agent, call.user).select_for_update())


def _left_of_raise(call: ModelCallAsked) -> Decimal:
    """What the session may still spend over its budgets."""
    if not call.raised:
        return NOTHING
    return call.raised - used_of_raise(call.session_id)


def used_of_raise(session_id: str) -> Decimal:
    """What a session has spent over its budgets, reserved amounts included."""
    used = SpendDay.objects.filter(session=session_id)
    reserved = SpendReservation.objects.filter(session=session_id, over=True)
    return _sum(used, "raised") + _sum(reserved, "amount")


def _reservation_of(call: ModelCallAsked) -> QuerySet[SpendReservation]:
    return SpendReservation.objects.filter(
        session=call.session_id, step_id=call.step_id, attempt=call.attempt
    )


def _reserve(call: ModelCallAsked, now: datetime, over: bool) -> None:
    SpendReservation.objects.update_or_create(
        session_id=call.session_id,
        step_id=call.step_id,
        attempt=call.attempt,
        defaults={
            "agent_id": call.agent,
            "user_id": call.user,
            "day": today_of(now),
            "at": now,
            "amount": call.estimate,
            "over": over,
        },
    )


def _count(reservation: Reservation, cost: Decimal) -> None:
    """Into the books, on the day on which the call began."""
    call = reservation.call
    row, _ = SpendDay.objects.get_or_create(
        session_id=call.session_id,
        day=today_of(reservation.at),
        defaults={"agent_id": call.agent, "user_id": call.user},
    )
    raised = cost if reservation.over else NOTHING
    SpendDay.objects.filter(pk=row.pk).update(spent=F("spent") + cost, raised=F("raised") + raised)


def _tell_unpriced(call: ModelCallAsked) -> None:
    now = timezone.now()
    row, _ = UnpricedModel.objects.get_or_create(model=call.model[:160], defaults={"last_at": now})
    UnpricedModel.objects.filter(pk=row.pk).update(
        calls=F("calls") + 1, last_session=call.session_id, last_at=now
    )
