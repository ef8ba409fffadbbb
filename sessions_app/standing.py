"""How a session stands, as its events carry it; and who a fact speaks of."""

from typing import Any

from django.contrib.auth import get_user_model

from sessions_app.flow.terms import Actor
from sessions_app.models import Session


def standing(session: Session) -> dict[str, Any]:
    """Status, phase, open interrupts and turn."""
    return {
        "status": session.status,
        "phase": session.phase,
        "waiting": session.waiting,
        "turn": session.turn,
    }


def user_of(actor: Actor | None) -> int | None:
    """The person's id, or None when there is no such user (any more)."""
    if actor is None or not actor.id:
        return None
    return actor.id if get_user_model().objects.filter(pk=actor.id).exists() else None
