"""`ModelSpendLimit`: what is asked before a model call, and told after it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Literal, Protocol

from django.conf import settings
from django.utils.module_loading import import_string


@dataclass(frozen=True)
class ModelCallAsked:
    """A model call that is about to be made. Money is US dollars.

    ``estimate`` is what it is expected to cost at most, None when its price is not known; ``raised``
    is what the session may spend over its budgets. ``agent`` and ``user`` (who started the session)
    are keys of rows.
    """

    session_id: str
    step_id: str
    attempt: int
    agent: int
    user: int | None
    model: str
    estimate: Decimal | None
    raised: Decimal = Decimal(0)


@dataclass(frozen=True)
class Reservation:
    """An admitted call; ``kept`` when its estimate is in the books until it is settled."""

    call: ModelCallAsked
    at: datetime
    kept: bool
    over: bool = False


@dataclass(frozen=True)
class Admitted:
    reservation: Reservation


@dataclass(frozen=True)
class Refused:
    """Why a call is not made, in ``words`` for people, and by which budget.

    ``until``: when the same question may be answered otherwise by itself; None for never.
    """

    reason: Literal["used_up", "unknown_price"]
    words: str
    budget: str
    spent: Decimal
    limit: Decimal
    until: datetime | None = None


class ModelSpendLimit(Protocol):
    """Both are called in the transaction of the Step that they are about, under its session's lock."""

    def admit(self, call: ModelCallAsked) -> Admitted | Refused:
        """Whether the call may be made. One that was admitted is asked about again in each attempt."""
        ...

    def settle(self, reservation: Reservation, cost: Decimal | None) -> None:
        """What the call cost: 0 if it was certainly not billed, None if that cannot be known.

        Not called for a call that was cut off; its reservation then stands for what it cost.
        """
        ...


def spend_limit() -> ModelSpendLimit:
    """The one in force: ``DEXWEB_SPEND_LIMIT``, budgets in our database unless it names another."""
    limit: ModelSpendLimit = import_string(settings.DEXWEB_SPEND_LIMIT)()
    return limit
