"""Brings a session's row in line with an engine that knows better.

A Flow that is terminated from outside, times out, or is lost with the engine's data tells nothing;
nor does one that no worker can replay.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from asgiref.sync import async_to_sync
from django.utils import timezone

from dexweb.engine.client import SessionEngine
from dexweb.engine.errors import DexwebError, EngineUnavailable, SessionNotFound
from sessions_app import projection
from sessions_app.models import Session

log = logging.getLogger(__name__)

CLOSED_AS = {
    "completed": (Session.Status.COMPLETED, ""),
    "failed": (Session.Status.FAILED, "The Flow failed in the engine."),
    "canceled": (Session.Status.CANCELED, "Canceled in the engine."),
    "terminated": (Session.Status.TERMINATED, "Terminated in the engine."),
    "timed_out": (Session.Status.TIMED_OUT, "The Flow reached its time limit in the engine."),
}
LOST = "The engine does not know this session any more."
BATCH = 20
WORDS_KEPT = 1000


def reconcile(session_id: str) -> None:
    """Close the row if the engine has closed its Flow, and say so if no worker can go on with it.

    Raises EngineUnavailable, SessionNotFound.
    """
    found = async_to_sync(SessionEngine().snapshot)(session_id)
    if found.status in CLOSED_AS:
        close(session_id, *CLOSED_AS[found.status])
        return
    tries_again = found.task_attempt > 1
    stuck = async_to_sync(SessionEngine().why_stuck)(session_id) if tries_again else None
    why = stuck.why if stuck else ""
    if Session.objects.filter(pk=session_id).exclude(stuck=why[:WORDS_KEPT]).exists():
        _tell_stuck(session_id, why)


def _tell_stuck(session_id: str, why: str) -> None:
    with projection.locked(session_id) as session:
        projection.tell_stuck(session, why[:WORDS_KEPT], timezone.now())


def close(session_id: str, status: str, reason: str, by: str = "") -> None:
    """End a session's rows for a Flow that cannot say so itself."""
    with projection.locked(session_id) as session:
        now = timezone.now()
        projection.close(session, status, session.close_reason or reason, by, now)
        session.updated_at = now


@contextmanager
def why_it_will_end(session_id: str, reason: str) -> Iterator[None]:
    """Keep why a person ends a Flow by force, since others may see its end before they return."""
    _keep_reason(session_id, reason)
    try:
        yield
    except DexwebError:
        _keep_reason(session_id, "")
        raise


def _keep_reason(session_id: str, reason: str) -> None:
    with projection.locked(session_id) as session:
        if session.open:
            session.close_reason = reason


def reconcile_some(after: str) -> str:
    """Reconcile the next few running sessions by id; returns where to go on, "" for the start.

    One that the engine does not know stays as it is until a person stops it: the address of
    another engine may have been set by mistake.
    """
    running = Session.objects.filter(status=Session.Status.RUNNING, pk__gt=after)
    ids = list(running.order_by("pk").values_list("pk", flat=True)[:BATCH])
    for session_id in ids:
        try:
            reconcile(session_id)
        except EngineUnavailable:
            raise
        except SessionNotFound:
            pass
        except Exception:
            # One that cannot be looked at keeps no other from being looked at.
            log.exception("session %s could not be reconciled", session_id)
    return ids[-1] if len(ids) == BATCH else ""
