"""The one place where an AgentEvent gets its number."""

from datetime import datetime
from typing import Any

from sessions_app.models import AgentEvent, Session
from sessions_app.stream.notify import notify


def append(
    session: Session,
    type: str,
    payload: dict[str, Any],
    at: datetime,
    step_id: str = "",
    attempt: int = 0,
) -> AgentEvent:
    """Add one event to ``session``'s stream.

    The caller holds the session's row lock in a transaction and saves ``session`` (its `last_seq`)
    before the transaction ends: the number and the rows that the event speaks of commit together.
    """
    session.last_seq += 1
    event = AgentEvent.objects.create(
        session=session,
        seq=session.last_seq,
        type=type,
        step_id=step_id,
        attempt=attempt,
        payload=payload,
        at=at,
    )
    notify(session.id)
    return event
