"""The Flow's facts about spend, as rows and events; called by `projection`."""

from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any

from sessions_app.flow import fact
from sessions_app.models import Session
from sessions_app.models.spend import CURRENCY
from sessions_app.standing import standing
from sessions_app.stream.append import append


def _blocked(session: Session, body: fact.SpendBlocked, at: datetime) -> None:
    payload = {
        "reason": body.reason,
        "budget": body.budget,
        "spent": body.spent,
        "limit": body.limit,
        "currency": CURRENCY,
        "words": body.words,
        "session": standing(session),
    }
    append(session, "spend.blocked", payload, at, step_id=body.step_id)


def _raised(session: Session, body: fact.SpendRaised, at: datetime) -> None:
    session.spend_raised = Decimal(body.total)
    payload = {
        "amount": body.amount,
        "total": body.total,
        "currency": CURRENCY,
        "by": body.by.name,
        "session": standing(session),
    }
    append(session, "spend.raised", payload, at)


SPEND_HANDLERS: dict[type, Callable[[Session, Any, datetime], None]] = {
    fact.SpendBlocked: _blocked,
    fact.SpendRaised: _raised,
}
