"""The one way to decide. Page, API and batch all call `decide`.

A decision is written first and delivered then: whatever dies in between, the worker's sweeper
delivers it with the same request id, and the Flow takes each request id once.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import F
from django.utils import timezone

from approvals_app.models import Decision, Interrupt
from approvals_app.rules import SEE, may_decide
from dexweb.engine.client import SessionEngine
from dexweb.engine.errors import (
    DecisionNotAllowed,
    DexwebError,
    EngineUnavailable,
    InterruptAlreadyDecided,
    InterruptExpired,
    InterruptNotFound,
    KeyReused,
    NoWorker,
    ReasonRequired,
    RpcLockConflict,
    StaleInterrupt,
    TooLarge,
    from_details,
)
from sessions_app.flow.state import Actor, ResolveInterrupt
from sessions_app.text import keepable

log = logging.getLogger(__name__)

REASON_BYTES = 8 * 1024
ABANDONED_AFTER = timedelta(seconds=15)


def decide(
    user: User,
    interrupt_id: str,
    *,
    verdict: str,
    revision: int,
    args_hash: str,
    reason: str = "",
    request_id: str,
) -> Decision:
    """Decide on an interrupt as ``user``; returns the delivered decision.

    Raises InterruptNotFound, DecisionNotAllowed, ReasonRequired, TooLarge, StaleInterrupt,
    InterruptAlreadyDecided, InterruptExpired, RpcLockConflict, KeyReused; and EngineUnavailable or
    NoWorker with ``delivery="delivery_pending"`` when the decision is kept and will be delivered.
    The same request again gets the first answer.
    """
    interrupt = _authorised(user, interrupt_id)
    reason = keepable(reason).strip()
    earlier = Decision.objects.filter(request_id=request_id).first()
    if earlier is not None:
        _same_request(earlier, user, interrupt, verdict, revision, args_hash)
        return _answer_again(earlier)
    if verdict == Decision.Verdict.REJECT and not reason:
        raise ReasonRequired()
    size = len(reason.encode("utf-8", "replace"))
    if size > REASON_BYTES:
        raise TooLarge(size=size, limit=REASON_BYTES)
    check_pending(interrupt)
    if (revision, args_hash) != (interrupt.revision, interrupt.args_hash):
        raise StaleInterrupt(
            interrupt_id=interrupt.pk, revision=interrupt.revision, args_hash=interrupt.args_hash
        )
    decision = _write(user, interrupt, verdict, revision, args_hash, reason, request_id)
    return deliver(decision)


def check_pending(interrupt: Interrupt) -> None:
    """Refuse, by the rows, what the Flow would refuse. (The Flow has the last word.)"""
    if interrupt.state == Interrupt.State.EXPIRED:
        raise expired(interrupt)
    if interrupt.state != Interrupt.State.PENDING:
        raise already_decided(interrupt)


def already_decided(interrupt: Interrupt) -> InterruptAlreadyDecided:
    return InterruptAlreadyDecided(
        interrupt_id=interrupt.pk,
        state=interrupt.state,
        by=interrupt.decided_by_name,
        at=interrupt.decided_at.isoformat() if interrupt.decided_at else "",
        reason=interrupt.reason,
    )


def expired(interrupt: Interrupt) -> InterruptExpired:
    return InterruptExpired(
        interrupt_id=interrupt.pk,
        deadline=interrupt.deadline.isoformat(),
        at_deadline=interrupt.at_deadline,
    )


def deliver(decision: Decision) -> Decision:
    """Hand a written decision to the engine and record how that went; raises what it refused with."""
    interrupt = decision.interrupt
    rpc = ResolveInterrupt(
        request_id=decision.request_id,
        interrupt_id=interrupt.pk,
        revision=decision.revision,
        args_hash=decision.args_hash,
        verdict=decision.verdict,  # type: ignore[arg-type]
        actor=Actor(decision.actor.pk, decision.actor.get_username()),
        reason=decision.reason,
    )
    try:
        async_to_sync(SessionEngine().resolve_interrupt)(interrupt.session_id, rpc)
    except (EngineUnavailable, NoWorker) as error:
        _mark(decision, Decision.State.DELIVERY_PENDING)
        error.delivery = Decision.State.DELIVERY_PENDING
        raise
    except DexwebError as error:
        return _refused(decision, error)
    _mark(decision, Decision.State.DELIVERED)
    return decision


def _refused(decision: Decision, error: DexwebError) -> Decision:
    """Record a refusal and raise it, unless the Flow had taken this very decision before."""
    interrupt = Interrupt.objects.get(pk=decision.interrupt_id)
    if interrupt.request_id == decision.request_id:
        _mark(decision, Decision.State.DELIVERED)
        return decision
    if not isinstance(error, RpcLockConflict | StaleInterrupt):
        # The rows may know more by now than the engine said: a session that has closed, say.
        error = _from_rows(interrupt) or error
    _mark(decision, Decision.State.REFUSED, {"code": error.code, **error.details()})
    raise error


def _from_rows(interrupt: Interrupt) -> DexwebError | None:
    try:
        check_pending(interrupt)
    except DexwebError as error:
        return error
    return None


def pending_delivery() -> list[Decision]:
    """What the sweeper has to deliver, oldest first: kept ones, and those whose sender died."""
    abandoned = timezone.now() - ABANDONED_AFTER
    kept = Decision.objects.filter(state=Decision.State.DELIVERY_PENDING)
    lost = Decision.objects.filter(state=Decision.State.SUBMITTING, created_at__lt=abandoned)
    rows = (kept | lost).select_related("interrupt", "actor").order_by("created_at", "id")
    return list(rows[:50])


def redeliver(decision: Decision) -> None:
    """Try a kept decision again, if its person may still decide."""
    try:
        if not may_decide(decision.actor, decision.interrupt):
            error = DecisionNotAllowed(permission=decision.interrupt.permission)
            _mark(decision, Decision.State.REFUSED, {"code": error.code, **error.details()})
            return
        deliver(decision)
    except DexwebError as error:
        log.info("decision %s is not delivered: %s", decision.request_id, error.code)


def _authorised(user: User, interrupt_id: str) -> Interrupt:
    interrupt = Interrupt.objects.select_related("session").filter(pk=interrupt_id).first()
    if interrupt is None or not user.has_perm(SEE):
        raise InterruptNotFound(interrupt_id=interrupt_id)
    if not may_decide(user, interrupt):
        raise DecisionNotAllowed(permission=interrupt.permission)
    return interrupt


def _same_request(
    earlier: Decision,
    user: User,
    interrupt: Interrupt,
    verdict: str,
    revision: int,
    args_hash: str,
) -> None:
    asked = (user.pk, interrupt.pk, verdict, revision, args_hash)
    first = (
        earlier.actor_id,
        earlier.interrupt_id,
        earlier.verdict,
        earlier.revision,
        earlier.args_hash,
    )
    if asked != first:
        raise KeyReused()


def _answer_again(earlier: Decision) -> Decision:
    """The first answer of a repeated request; one still on its way, or refused only because of a
    lock, is sent once more."""
    if earlier.state == Decision.State.DELIVERED:
        return earlier
    locked = earlier.refusal.get("code") == RpcLockConflict.code
    if earlier.state == Decision.State.REFUSED and not locked:
        details = {name: value for name, value in earlier.refusal.items() if name != "code"}
        raise from_details(earlier.refusal["code"], details)
    return deliver(earlier)


def _write(
    user: User,
    interrupt: Interrupt,
    verdict: str,
    revision: int,
    args_hash: str,
    reason: str,
    request_id: str,
) -> Decision:
    try:
        with transaction.atomic():
            return Decision.objects.create(
                request_id=request_id,
                interrupt=interrupt,
                actor=user,
                verdict=verdict,
                revision=revision,
                args_hash=args_hash,
                reason=reason,
            )
    except IntegrityError:
        standing = (
            Decision.objects.filter(interrupt=interrupt, revision=revision, actor=user)
            .exclude(state=Decision.State.REFUSED)
            .first()
        )
        if standing is None:
            raise
        if standing.verdict == verdict:
            return standing
        word = {"approve": "approved", "reject": "rejected"}[standing.verdict]
        raise InterruptAlreadyDecided(
            interrupt_id=interrupt.pk,
            state=word,
            by=user.get_username(),
            at=standing.created_at.isoformat(),
            reason=standing.reason,
        ) from None


def _mark(decision: Decision, state: str, refusal: dict[str, object] | None = None) -> None:
    """Record the delivery's state; a delivered decision never becomes anything else."""
    changes = {"state": state, "refusal": refusal or {}, "tries": F("tries") + 1}
    if state == Decision.State.DELIVERED:
        changes["delivered_at"] = timezone.now()
    rows = Decision.objects.filter(pk=decision.pk).exclude(state=Decision.State.DELIVERED)
    rows.update(**changes)
    decision.refresh_from_db()
