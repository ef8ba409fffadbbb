"""Holding an interrupt while one looks at it, letting go, and moving its deadline."""

from datetime import datetime
from typing import Any

from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.utils import timezone

from approvals_app import audit
from approvals_app.decisions import authorise, check_approval, check_pending, find
from approvals_app.models import Interrupt
from dexweb.engine.client import SessionEngine
from dexweb.engine.errors import DeadlineInPast
from sessions_app.flow.state import ExtendDeadline, HoldInterrupt, ReleaseInterrupt
from sessions_app.flow.terms import Actor

HOLD_SECONDS = 300
LONGEST_HOLD = 600


def hold(user: User, interrupt_id: str, *, seconds: float = HOLD_SECONDS, request_id: str) -> None:
    """Put ``user``'s name on an interrupt for at most ten minutes; again to stay longer.

    Raises what `decisions.authorise` raises, RpcLockConflict while another person holds it,
    InterruptAlreadyDecided, InterruptExpired, EngineUnavailable, NoWorker.
    """
    _keep(user, interrupt_id, seconds, request_id, take_over=False)


def take_over(
    user: User, interrupt_id: str, *, seconds: float = HOLD_SECONDS, request_id: str
) -> None:
    """As `hold`, from whoever holds it; anybody who may decide may, and it is in the audit log."""
    _keep(user, interrupt_id, seconds, request_id, take_over=True)


def release(user: User, interrupt_id: str, *, request_id: str) -> None:
    """Let go of a hold. Raises RpcLockConflict when it is another person's."""
    interrupt = _allowed(user, interrupt_id)
    rpc = ReleaseInterrupt(request_id, interrupt_id, _actor(user))
    async_to_sync(SessionEngine().release_interrupt)(interrupt.session_id, rpc)
    _record(user, interrupt, "hold.released", request_id)


def extend(user: User, interrupt_id: str, *, until: datetime, request_id: str) -> None:
    """Move the deadline to ``until`` (with a zone), later than now but not for ever.

    Raises DeadlineInPast, DeadlineNotLater and DeadlineTooFar beside the usual.
    """
    interrupt = _allowed(user, interrupt_id)
    check_approval(interrupt)
    if until <= timezone.now():
        raise DeadlineInPast(until=until.isoformat())
    rpc = ExtendDeadline(request_id, interrupt_id, until.isoformat(), _actor(user))
    async_to_sync(SessionEngine().extend_deadline)(interrupt.session_id, rpc)
    _record(
        user,
        interrupt,
        "deadline.extended",
        request_id,
        before=interrupt.deadline.isoformat(),
        after=until.isoformat(),
    )


def _keep(user: User, interrupt_id: str, seconds: float, request_id: str, take_over: bool) -> None:
    interrupt = _allowed(user, interrupt_id)
    seconds = min(max(seconds, 1), LONGEST_HOLD)
    rpc = HoldInterrupt(request_id, interrupt_id, _actor(user), seconds, take_over)
    async_to_sync(SessionEngine().hold_interrupt)(interrupt.session_id, rpc)
    action = "hold.taken_over" if take_over else "hold.taken"
    _record(user, interrupt, action, request_id, taken_from=interrupt.hold_by_name)


def _allowed(user: User, interrupt_id: str) -> Interrupt:
    interrupt = find(user, interrupt_id)
    authorise(user, interrupt)
    check_pending(interrupt)
    return interrupt


def _actor(user: User) -> Actor:
    return Actor(user.pk, user.get_username())


def _record(user: User, interrupt: Interrupt, action: str, request_id: str, **detail: Any) -> None:
    audit.record_once(
        user,
        action,
        f"interrupt:{interrupt.pk}",
        session_id=interrupt.session_id,
        request_id=request_id,
        **detail,
    )
