"""What people can do to sessions. Page, API and admin call these; each checks, asks the engine, answers."""

import hashlib
import json
import uuid
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime
from decimal import Decimal
from typing import Any

from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.utils import timezone

from approvals_app import audit
from approvals_app.decisions import check_pending
from approvals_app.models import Interrupt
from dexweb.engine.client import SessionEngine
from dexweb.engine.errors import (
    AgentNotFound,
    BlankMessage,
    DexwebError,
    InterruptNotFound,
    InvalidAmount,
    InvalidSettings,
    ReasonRequired,
    SessionClosed,
    SessionNotFound,
    WrongKind,
)
from sessions_app import projection
from sessions_app.flow import fact, state, terms
from sessions_app.limits import installed, limits_of
from sessions_app.models import Agent, Session
from sessions_app.reconcile import LOST, close, reconcile, why_it_will_end
from sessions_app.session_settings import patch_errors, patched, plain
from sessions_app.step_times import limits_for
from sessions_app.text import check_size, keepable, title_of

OPERATE = "sessions_app.operate_session"
RAISE_SPEND = "sessions_app.raise_spend"
MOST_RAISED = 1_000_000
#: Below what a row can hold, of which the Flow knows nothing.
MOST_RAISED_IN_ALL = 50_000_000
REASON_BYTES = 8 * 1024
PARENT_TERMINATED = "The session that gave it this task was terminated."


def actor_of(user: User) -> terms.Actor:
    return terms.Actor(user.pk, user.get_username())


def start_session(
    user: User,
    *,
    agent: str,
    message: str,
    title: str = "",
    labels: dict[str, str] | None = None,
    settings: dict[str, Any] | None = None,
    request_id: str,
) -> Session:
    """Start a session with the enabled agent of this name. The same request id gives the same one.

    ``settings``: what it changes of the agent's from its first turn on (`session_settings`).
    Raises AgentNotFound, BlankMessage, InvalidSettings, TooLarge, EngineUnavailable. Needs no
    worker: the first message waits in the engine until one comes.
    """
    _may_operate(user)
    definition = Agent.objects.enabled().filter(name=agent).first()
    if definition is None:
        raise AgentNotFound(agent=agent)
    limits = limits_for(definition)
    message, title = keepable(message), keepable(title)
    check_message(message, limits)
    now = timezone.now()
    session_id = session_id_for(definition, user, request_id)
    if not Session.objects.filter(pk=session_id).exists():
        _start(
            state.SessionInput(
                session_id=session_id,
                agent=definition.name,
                title=(title.strip() or title_of(message))[:200],
                pool=definition.pool,
                started_by=actor_of(user),
                first_message=terms.UserMessage(
                    request_id, message, actor_of(user), now.isoformat()
                ),
                labels=labels or {},
                limits=limits,
                settings=_checked_patch(definition, {}, settings) if settings else "",
            ),
            now,
        )
    # Of an earlier one too: whoever began it may have died before it was written down.
    audit.record_once(
        user,
        "session.started",
        f"session:{session_id}",
        session_id=session_id,
        agent=agent,
        request_id=request_id,
    )
    return Session.objects.select_related("agent", "started_by").get(pk=session_id)


def send_message(user: User, session_id: str, text: str, request_id: str) -> state.RpcAnswer:
    """Queue a message for the agent. Raises what `SessionEngine.send_message` raises."""
    _may_operate(user)
    session = _session(session_id)
    text = keepable(text)
    check_message(text, limits_of(session))
    rpc = state.SendMessage(request_id, text, actor_of(user))
    return _asked(session, SessionEngine().send_message, rpc)


def edit_queued(
    user: User, session_id: str, message_id: str, text: str, request_id: str
) -> state.RpcAnswer:
    """Put another text in a message that waits. Raises MessageNotFound once the agent has taken it."""
    _may_operate(user)
    session = _session(session_id)
    text = keepable(text)
    check_message(text, limits_of(session))
    rpc = state.EditQueued(request_id, message_id, text, actor_of(user))
    return _on_message(user, session, "message.edited", SessionEngine().edit_queued, rpc)


def delete_queued(user: User, session_id: str, message_id: str, request_id: str) -> state.RpcAnswer:
    """Withdraw a message that waits. Raises MessageNotFound once the agent has taken it."""
    _may_operate(user)
    session = _session(session_id)
    rpc = state.DeleteQueued(request_id, message_id, actor_of(user))
    return _on_message(user, session, "message.deleted", SessionEngine().delete_queued, rpc)


def steer(user: User, session_id: str, message_id: str, request_id: str) -> state.RpcAnswer:
    """Have a waiting message read before the next model call; what waits for people is superseded.

    Raises MessageNotFound once the agent has taken it.
    """
    _may_operate(user)
    session = _session(session_id)
    rpc = state.Steer(request_id, message_id, actor_of(user))
    return _on_message(user, session, "message.steered", SessionEngine().steer, rpc)


def _on_message(
    user: User, session: Session, action: str, ask: Callable[..., Awaitable[Any]], rpc: Any
) -> state.RpcAnswer:
    answer: state.RpcAnswer = _asked(session, ask, rpc)
    _record(user, session, action, "", rpc.request_id, message_id=rpc.message_id)
    return answer


def update_settings(
    user: User, session_id: str, patch: dict[str, Any], revision: int, request_id: str
) -> state.RpcAnswer:
    """Change what the session's next turns begin with (`session_settings`), on top of ``revision``.

    Raises InvalidSettings, StaleSettings, TooLarge.
    """
    _may_operate(user)
    session = _session(session_id)
    text = _checked_patch(session.agent, session.settings, patch)
    rpc = state.UpdateSettings(request_id, text, revision, actor_of(user))
    answer: state.RpcAnswer = _asked(session, SessionEngine().update_settings, rpc)
    _record(user, session, "session.settings_changed", "", request_id, patch=text)
    return answer


def _checked_patch(agent: Agent, changes: dict[str, Any], patch: dict[str, Any]) -> str:
    patch = plain(patch)
    errors = patch_errors(agent, changes, patch)
    if errors:
        raise InvalidSettings(errors=errors)
    text = json.dumps(patch, ensure_ascii=False)
    for kept in (text, json.dumps(patched(changes, patch), ensure_ascii=False)):
        check_size(kept, installed().message_bytes)
    return text


def answer_question(
    user: User, interrupt_id: str, *, revision: int, answers: list[list[str]], request_id: str
) -> state.RpcAnswer:
    """Answer all questions of an interrupt, in their order; each answer is a list of texts.

    Raises InterruptNotFound, WrongKind, TooLarge, InvalidArguments, StaleInterrupt,
    InterruptAlreadyDecided, RpcLockConflict, EngineUnavailable, NoWorker.
    """
    _may_operate(user)
    interrupt = Interrupt.objects.select_related("session").filter(pk=interrupt_id).first()
    if interrupt is None:
        raise InterruptNotFound(interrupt_id=interrupt_id)
    if not interrupt.is_question:
        raise WrongKind(interrupt_id=interrupt_id, kind=interrupt.kind)
    if interrupt.request_id == request_id and interrupt.decided_at:
        return state.RpcAnswer(interrupt_id, interrupt.decided_at.isoformat(), interrupt.state)
    check_pending(interrupt)
    given = [[keepable(text).strip() for text in answer] for answer in answers]
    check_size("".join(text for answer in given for text in answer), installed().message_bytes)
    rpc = state.AnswerQuestion(request_id, interrupt_id, revision, given, actor_of(user))
    answer: state.RpcAnswer = _asked(interrupt.session, SessionEngine().answer_question, rpc)
    audit.record_once(
        user,
        "question.answered",
        f"interrupt:{interrupt_id}",
        session_id=interrupt.session_id,
        request_id=request_id,
    )
    return answer


def skip_wait(user: User, session_id: str, step_id: str, request_id: str) -> state.RpcAnswer:
    """End the wait of a DurableWait Step now. Raises NotWaiting when it is over."""
    _may_operate(user)
    session = _session(session_id)
    rpc = state.SkipWait(request_id, step_id, actor_of(user))
    answer: state.RpcAnswer = _asked(session, SessionEngine().skip_wait, rpc)
    _record(user, session, "wait.skipped", "", request_id, step=step_id)
    return answer


def cancel_turn(user: User, session_id: str, reason: str, request_id: str) -> state.RpcAnswer:
    """Cancel the running turn. Raises NoTurn."""
    _may_operate(user)
    session = _session(session_id)
    reason = checked_reason(reason)
    rpc = state.CancelTurn(request_id, actor_of(user), reason)
    answer: state.RpcAnswer = _asked(session, SessionEngine().cancel_turn, rpc)
    _record(user, session, "turn.canceled", reason, request_id)
    return answer


def raise_spend(user: User, session_id: str, amount: str, request_id: str) -> state.RpcAnswer:
    """Let a session that a budget blocks spend ``amount`` (US dollars) over its budgets; by 0, the
    budgets are asked again. Raises NotBlocked, InvalidAmount.
    """
    if not user.has_perm(RAISE_SPEND):
        raise PermissionDenied("This needs the permission to raise spend.")
    session = _session(session_id)
    checked = _checked_amount(amount)
    if session.spend_raised + Decimal(checked) > MOST_RAISED_IN_ALL:
        raise InvalidAmount()
    rpc = state.RaiseSpend(request_id, checked, actor_of(user))
    answer: state.RpcAnswer = _asked(session, SessionEngine().raise_spend, rpc)
    _record(user, session, "spend.raised", "", request_id, amount=checked)
    return answer


def _checked_amount(amount: str) -> str:
    try:
        value = Decimal(amount.strip())
        if not 0 <= value <= MOST_RAISED or value != value.quantize(Decimal("0.000001")):
            raise InvalidAmount()
    except ArithmeticError:
        raise InvalidAmount() from None
    return f"{value.normalize():f}"


def stop(user: User, session_id: str, kind: str, reason: str, request_id: str) -> state.RpcAnswer:
    """End a session: complete when its queue is done, cancel, terminate or fail (for which: why)."""
    _may_operate(user)
    session = _session(session_id)
    reason = checked_reason(reason)
    if kind in ("terminate", "fail") and not reason.strip():
        raise ReasonRequired()
    answer = _stop(user, session, kind, reason, request_id)
    _record(user, session, "session.stopped", reason, request_id, kind=kind)
    return answer


def _stop(user: User, session: Session, kind: str, reason: str, request_id: str) -> state.RpcAnswer:
    try:
        if kind == "terminate":
            return _terminate(user, session, reason, request_id)
        rpc = state.Stop(request_id, kind, actor_of(user), reason)  # type: ignore[arg-type]
        answer: state.RpcAnswer = _asked(session, SessionEngine().stop, rpc)
        return answer
    except SessionNotFound:
        # The engine has lost it, so nothing runs; without this its row could never be closed.
        close(session.pk, Session.Status.TERMINATED, LOST, user.get_username())
        return _ended(session, Session.Status.TERMINATED)


def _terminate(user: User, session: Session, reason: str, request_id: str) -> state.RpcAnswer:
    """A terminated Flow says nothing any more, so its end is recorded here.

    The request that did it may be made again by whoever died before its end was recorded.
    """
    if not session.open:
        if not _terminated_by(session, reason, request_id):
            raise SessionClosed(session_status=session.status)
        return _ended(session, session.status)
    try:
        with why_it_will_end(session.pk, reason):
            async_to_sync(SessionEngine().terminate)(session.pk, reason)
    except SessionClosed as closed:
        if closed.session_status != Session.Status.TERMINATED:
            reconcile(session.pk)
            raise
    close(session.pk, Session.Status.TERMINATED, reason, user.get_username())
    _terminate_children(session, user.get_username())
    return _ended(session, Session.Status.TERMINATED)


def _terminated_by(session: Session, reason: str, request_id: str) -> bool:
    """Whether it was this request: its entry says so, or none does and the reason is the same."""
    subject = f"session:{session.pk}"
    if audit.recorded("session.stopped", subject, request_id):
        return True
    terminated = (session.status, session.close_reason) == (Session.Status.TERMINATED, reason)
    return terminated and not audit.recorded("session.stopped", subject)


def _terminate_children(session: Session, by: str) -> None:
    """The engine ends them too, by and by; their rows need not wait for that."""
    for child in session.children.filter(status=Session.Status.RUNNING):
        # One that had not begun, or has just ended, is as good as terminated.
        with suppress(SessionClosed, SessionNotFound):
            async_to_sync(SessionEngine().terminate)(child.pk, PARENT_TERMINATED)
        close(child.pk, Session.Status.TERMINATED, PARENT_TERMINATED, by)
        _terminate_children(child, by)


def _ended(session: Session, status: str) -> state.RpcAnswer:
    return state.RpcAnswer(session.pk, timezone.now().isoformat(), status)


def _record(
    user: User, session: Session, action: str, reason: str, request_id: str, **detail: str
) -> None:
    subject = f"session:{session.pk}"
    audit.record_once(
        user,
        action,
        subject,
        session_id=session.pk,
        reason=keepable(reason),
        request_id=request_id,
        **detail,
    )


def _asked(session: Session, rpc: Callable[..., Awaitable[Any]], argument: Any) -> Any:
    """What the engine answers; if it has closed the session unseen, the row learns of it.

    A closed one takes nothing new, but a request that it took before is answered once more.
    """
    if not session.open:
        try:
            return async_to_sync(rpc)(session.pk, argument)
        except DexwebError:
            raise SessionClosed(session_status=session.status) from None
    try:
        return async_to_sync(rpc)(session.pk, argument)
    except SessionClosed:
        reconcile(session.pk)
        raise


def check_message(text: str, limits: state.Limits) -> None:
    """Refuse before asking the engine what it would refuse anyway."""
    if not text.strip():
        raise BlankMessage()
    check_size(text, limits.message_bytes)


def checked_reason(reason: str) -> str:
    """``reason`` as it is kept: it goes into several events, each of which has a bound."""
    reason = keepable(reason)
    check_size(reason, REASON_BYTES)
    return reason


def session_id_for(agent: Agent, user: User, request_id: str) -> str:
    """The id follows from the request, so that a repeated one finds the session it made."""
    digest = hashlib.sha256(f"{user.pk}:{request_id}".encode()).hexdigest()
    return f"{agent.name}-{digest[:12]}"


def new_request_id() -> str:
    return str(uuid.uuid4())


def _start(given: state.SessionInput, at: datetime) -> None:
    async_to_sync(SessionEngine().start_session)(given)
    started = fact.SessionStarted(
        "session_started",
        given.agent,
        given.title,
        given.started_by,
        given.labels,
        "",
        given.limits,
    )
    with transaction.atomic():
        projection.ensure_session(given.session_id, started, at)


def _may_operate(user: Any) -> None:
    if not user.has_perm(OPERATE):
        raise PermissionDenied("This needs the permission to operate sessions.")


def _session(session_id: str) -> Session:
    session = Session.objects.select_related("agent").filter(pk=session_id).first()
    if session is None:
        raise SessionNotFound(session_id=session_id)
    return session
