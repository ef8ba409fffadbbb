"""The one place where an AgentEvent gets its number."""

from datetime import datetime
from typing import Any

from sessions_app.models import AgentEvent, Session
from sessions_app.stream.notify import notify
from sessions_app.stream.sizes import fitted


def append(
    session: Session,
    type: str,
    payload: dict[str, Any],
    at: datetime,
    step_id: str = "",
    attempt: int = 0,
) -> None:
    """Add one event to ``session``'s stream; it is written by `write`, with the session itself.

    The caller holds the session's row lock in a transaction, so the number, and the rows that the
    event speaks of, commit together.
    """
    session.last_seq += 1
    session.unwritten_events.append(
        AgentEvent(
            session=session,
            seq=session.last_seq,
            type=type,
            step_id=step_id,
            attempt=attempt,
            payload=fitted(payload),
            at=at,
        )
    )


def write(session: Session) -> None:
    """Save ``session`` and the events that were appended to it; the last thing before the commit."""
    AgentEvent.objects.bulk_create(session.unwritten_events)
    session.unwritten_events = []
    session.save()
    notify(session.pk)
