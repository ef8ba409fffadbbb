"""The one way to decide. Page, API and batch all call `decide`.

A decision is written first and delivered then: whatever dies in between, the worker's sweeper
delivers it with the same request id, and the Flow takes each request id once.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from asgiref.sync import async_to_sync
from django.conf import settings
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import F
from django.utils import timezone

from approvals_app import audit
from approvals_app.models import Decision, Interrupt
from approvals_app.models.interrupts import OPERATE
from approvals_app.rules import SEE, standing_to_decide
from dexweb.engine.client import SessionEngine
from dexweb.engine.errors import (
    AlreadyVoted,
    DecisionNotAllowed,
    DexwebError,
    EngineUnavailable,
    FourEyes,
    InterruptAlreadyDecided,
    InterruptExpired,
    InterruptNotFound,
    InvalidArguments,
    KeyReused,
    NotEditable,
    NoWorker,
    ReasonRequired,
    RpcLockConflict,
    StaleInterrupt,
    WrongKind,
    from_details,
)
from sessions_app import arguments
from sessions_app.flow.state import ResolveInterrupt
from sessions_app.flow.terms import Actor
from sessions_app.models import ToolCall
from sessions_app.text import check_size, keepable
from sessions_app.tools.schemas import validate_args

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
    args: str = "",
    request_id: str,
) -> Decision:
    """Decide on an interrupt as ``user``; returns the delivered decision.

    ``args``, JSON text, are edited arguments to run instead of those that were shown.

    Raises InterruptNotFound, DecisionNotAllowed, FourEyes, ReasonRequired, NotEditable,
    InvalidArguments, TooLarge, StaleInterrupt, InterruptAlreadyDecided, InterruptExpired,
    AlreadyVoted, RpcLockConflict, KeyReused; and EngineUnavailable, NoWorker or (of one that was
    kept before) RpcLockConflict with ``delivery="delivery_pending"`` when the decision is kept and
    will be delivered.
    The same request again gets the first answer. What was refused is in the audit log too.
    """
    interrupt = find(user, interrupt_id)
    asked = Asked(verdict, revision, args_hash, keepable(reason).strip(), args)
    try:
        return _decide(user, interrupt, asked, request_id)
    except DexwebError as error:
        if not error.kept:
            _audit(user, interrupt, asked, error.code)
        raise


@dataclass(frozen=True)
class Asked:
    """What a person wants. ``args``: edited arguments as JSON text, else empty."""

    verdict: str
    revision: int
    args_hash: str
    reason: str
    args: str


def _decide(user: User, interrupt: Interrupt, asked: Asked, request_id: str) -> Decision:
    for_whom = authorise(user, interrupt)
    check_approval(interrupt)
    earlier = Decision.objects.filter(request_id=request_id).first()
    if earlier is not None:
        _same_request(earlier, user, interrupt, asked)
        return _answer_again(earlier)
    _check_reason(interrupt, asked)
    own = _said_before(user, interrupt, asked)
    if own is not None:
        return own
    check_pending(interrupt)
    if (asked.revision, asked.args_hash) != (interrupt.revision, interrupt.args_hash):
        raise StaleInterrupt(
            interrupt_id=interrupt.pk, revision=interrupt.revision, args_hash=interrupt.args_hash
        )
    # Who rejects has no use for what they had begun to edit.
    edits = asked.args and asked.verdict == Decision.Verdict.APPROVE
    edited = check_edited(interrupt, asked.args) if edits else ""
    decision = _write(user, for_whom, interrupt, asked, edited, request_id)
    return deliver(decision)


def _said_before(user: User, interrupt: Interrupt, asked: Asked) -> Decision | None:
    """The decision of ``user`` that counted, when this says the same again after all is over."""
    if interrupt.state == Interrupt.State.PENDING or asked.args:
        return None
    same = Decision.objects.filter(
        interrupt=interrupt,
        actor=user,
        state=Decision.State.DELIVERED,
        verdict=asked.verdict,
        revision=asked.revision,
        args_hash=asked.args_hash,
        edited_args="",
    )
    return same.first()


def find(user: User, interrupt_id: str) -> Interrupt:
    """The interrupt, for somebody who may see approvals. Raises InterruptNotFound."""
    rows = Interrupt.objects.select_related("session", "session__started_by")
    interrupt = rows.filter(pk=interrupt_id).first()
    if interrupt is None or not user.is_active or not user.has_perm(SEE):
        raise InterruptNotFound(interrupt_id=interrupt_id)
    return interrupt


def authorise(user: User, interrupt: Interrupt) -> User | None:
    """For whom ``user`` decides (None: for themselves). Raises DecisionNotAllowed, FourEyes."""
    standing = standing_to_decide(user, interrupt)
    if not standing.holds:
        raise DecisionNotAllowed(permission=interrupt.permission or OPERATE)
    if standing.barred_because:
        raise FourEyes(because=standing.barred_because)
    return standing.for_whom


def check_approval(interrupt: Interrupt) -> None:
    """Refuse where a question is to be answered."""
    if interrupt.is_question:
        raise WrongKind(interrupt_id=interrupt.pk, kind=interrupt.kind)


def _check_reason(interrupt: Interrupt, asked: Asked) -> None:
    policy = interrupt.policy
    rejecting = asked.verdict == Decision.Verdict.REJECT
    needed = policy.get("reason_on_reject", True) if rejecting else policy.get("reason_on_approve")
    if needed and not asked.reason:
        raise ReasonRequired()
    check_size(asked.reason, REASON_BYTES)


def check_edited(interrupt: Interrupt, text: str) -> str:
    """Edited arguments as they will run, or "" when they are the same as before.

    Raises NotEditable, TooLarge, InvalidArguments (with the path of each fault).
    """
    if not interrupt.policy.get("editable"):
        raise NotEditable()
    check_size(text, settings.DEXWEB_LIMIT_ARGUMENTS)
    try:
        args = arguments.parse(text)
        args_hash = arguments.hash_of(args)
    except (ValueError, RecursionError) as error:
        raise InvalidArguments(errors=[str(error)]) from error
    call = ToolCall.objects.get(session=interrupt.session_id, call_id=interrupt.call_id)
    if not call.schema:
        raise NotEditable()
    faults = validate_args(call.schema, args)
    if faults:
        raise InvalidArguments(errors=faults)
    return "" if args_hash == interrupt.args_hash else arguments.as_text(args)


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


def deliver(decision: Decision, nobody_waits: bool = False) -> Decision:
    """Hand a written decision to the engine and record how that went; raises what it refused with.

    Where it meets a lock or somebody's hold it is refused; but one that was kept before, or for whose
    answer ``nobody_waits``, is kept until that is over.
    """
    kept = nobody_waits or decision.state == Decision.State.DELIVERY_PENDING
    interrupt = decision.interrupt
    rpc = ResolveInterrupt(
        request_id=decision.request_id,
        interrupt_id=interrupt.pk,
        revision=decision.revision,
        args_hash=decision.args_hash,
        verdict=decision.verdict,  # type: ignore[arg-type]
        actor=Actor(decision.actor.pk, decision.actor.get_username()),
        reason=decision.reason,
        on_behalf_of=_actor(decision.on_behalf_of),
        edited_args=decision.edited_args,
        edited_hash=_hash(decision.edited_args),
    )
    try:
        async_to_sync(SessionEngine().resolve_interrupt)(interrupt.session_id, rpc)
    except (EngineUnavailable, NoWorker) as error:
        _mark(decision, Decision.State.DELIVERY_PENDING, {"code": error.code})
        error.delivery = Decision.State.DELIVERY_PENDING
        raise
    except DexwebError as error:
        return _refused(decision, error, kept)
    _delivered(decision)
    return decision


def _actor(user: User | None) -> Actor | None:
    return None if user is None else Actor(user.pk, user.get_username())


def _hash(edited: str) -> str:
    return arguments.hash_of(arguments.parse(edited)) if edited else ""


def _delivered(decision: Decision) -> None:
    """Mark it, and audit it once: whoever marks it first also writes the entry, which tells of the
    person's own act, however much later and by whom it was delivered."""
    with transaction.atomic(), audit.via(decision.via):
        if not _mark(decision, Decision.State.DELIVERED):
            return
        audit.record(
            decision.actor,
            f"decision.{decision.verdict}",
            f"interrupt:{decision.interrupt_id}",
            session_id=decision.interrupt.session_id,
            tool=decision.interrupt.tool,
            revision=decision.revision,
            args_hash=_hash(decision.edited_args) or decision.args_hash,
            edited=bool(decision.edited_args),
            reason=decision.reason,
            on_behalf_of=decision.on_behalf_of.get_username() if decision.on_behalf_of else "",
            decided_at=decision.created_at.isoformat(),
            request_id=decision.request_id,
        )


def _audit(user: User, interrupt: Interrupt, asked: Asked, code: str, **kept: str) -> None:
    write: Any = audit.record_once if kept else audit.record
    write(
        user,
        "decision.refused",
        f"interrupt:{interrupt.pk}",
        session_id=interrupt.session_id,
        tool=interrupt.tool,
        verdict=asked.verdict,
        revision=asked.revision,
        args_hash=asked.args_hash[:64],
        code=code,
        **kept,
    )


def _audit_kept(decision: Decision) -> None:
    """Once, whoever delivers it: what became of one that nobody waits for, if it was refused."""
    if decision.state != Decision.State.REFUSED:
        return
    asked = Asked(decision.verdict, decision.revision, decision.args_hash, "", "")
    once = {"decided_at": decision.created_at.isoformat(), "request_id": decision.request_id}
    with audit.via(decision.via):
        _audit(decision.actor, decision.interrupt, asked, decision.refusal["code"], **once)


def _refused(decision: Decision, error: DexwebError, kept: bool) -> Decision:
    """Record a refusal and raise it, unless the Flow had taken this very decision before."""
    interrupt = Interrupt.objects.get(pk=decision.interrupt_id)
    # "Already voted" is about another request of theirs: the Flow answers the same one again.
    counted = not isinstance(error, AlreadyVoted) and _voted(decision)
    if interrupt.request_id == decision.request_id or counted:
        _delivered(decision)
        return decision
    if not isinstance(error, RpcLockConflict | StaleInterrupt):
        # The rows may know more by now than the engine said: a session that has closed, say.
        error = _from_rows(interrupt) or error
    state = Decision.State.REFUSED
    if kept and isinstance(error, RpcLockConflict):
        state = error.delivery = Decision.State.DELIVERY_PENDING
    _mark(decision, state, {"code": error.code, **error.details()})
    raise error


def _voted(decision: Decision) -> bool:
    """Whether the Flow has counted this decision as one vote of several."""
    revision = decision.revision + bool(decision.edited_args)
    votes = decision.interrupt.votes.filter(person=decision.actor, verdict=decision.verdict)
    return votes.filter(revision=revision).exists()


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
    rows = (
        (kept | lost)
        .select_related("interrupt__session", "actor", "on_behalf_of")
        .order_by("created_at", "id")
    )
    return list(rows[:50])


def redeliver(decision: Decision) -> DexwebError | None:
    """Try a kept decision again, if its person may still decide; returns why it was not delivered."""
    try:
        authorise(decision.actor, decision.interrupt)
    except (DecisionNotAllowed, FourEyes) as error:
        _mark(decision, Decision.State.REFUSED, {"code": error.code, **error.details()})
        _audit_kept(decision)
        return error
    try:
        deliver(decision, nobody_waits=True)
    except DexwebError as error:
        _audit_kept(decision)
        return error
    return None


def _same_request(earlier: Decision, user: User, interrupt: Interrupt, asked: Asked) -> None:
    now = (user.pk, interrupt.pk, asked.verdict, asked.revision, asked.args_hash)
    first = (
        earlier.actor_id,
        earlier.interrupt_id,
        earlier.verdict,
        earlier.revision,
        earlier.args_hash,
    )
    if now != first:
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
    for_whom: User | None,
    interrupt: Interrupt,
    asked: Asked,
    edited: str,
    request_id: str,
) -> Decision:
    try:
        with transaction.atomic():
            return Decision.objects.create(
                request_id=request_id,
                interrupt=interrupt,
                actor=user,
                on_behalf_of=for_whom,
                verdict=asked.verdict,
                revision=asked.revision,
                args_hash=asked.args_hash,
                edited_args=edited,
                reason=asked.reason,
                via=audit.surface(),
            )
    except IntegrityError:
        return _standing(user, interrupt, asked, edited)


def _standing(user: User, interrupt: Interrupt, asked: Asked, edited: str) -> Decision:
    """The person's own earlier word on this revision, if it says the same."""
    rows = Decision.objects.filter(interrupt=interrupt, revision=asked.revision, actor=user)
    standing = rows.exclude(state=Decision.State.REFUSED).first()
    if standing and (standing.verdict, standing.edited_args) == (asked.verdict, edited):
        return standing
    if standing is None or standing.state == Decision.State.SUBMITTING:
        # Their other word is on its way: what becomes of it, nobody can say yet.
        raise RpcLockConflict(keys=[f"interrupt:{interrupt.pk}"], holder=user.get_username())
    word = {"approve": "approved", "reject": "rejected"}[standing.verdict]
    raise InterruptAlreadyDecided(
        interrupt_id=interrupt.pk,
        state=word,
        by=user.get_username(),
        at=standing.created_at.isoformat(),
        reason=standing.reason,
    )


def _mark(decision: Decision, state: str, refusal: dict[str, object] | None = None) -> bool:
    """Record the delivery's state; a delivered decision never becomes anything else."""
    changes: dict[str, Any] = {"state": state, "refusal": refusal or {}, "tries": F("tries") + 1}
    if state == Decision.State.DELIVERED:
        changes["delivered_at"] = timezone.now()
    rows = Decision.objects.filter(pk=decision.pk).exclude(state=Decision.State.DELIVERED)
    changed = rows.update(**changes)
    decision.refresh_from_db()
    return bool(changed)
