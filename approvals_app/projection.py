"""The Flow's facts about interrupts, as rows and events; called by `sessions_app.projection`."""

from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime
from typing import Any

from approvals_app.models import Interrupt, NotificationEvent, Vote
from approvals_app.notify.rules import enqueue, enqueue_edit, enqueue_end
from sessions_app.flow import fact, terms
from sessions_app.flow.questions import NO_DEADLINE
from sessions_app.models import Session
from sessions_app.standing import standing, user_of
from sessions_app.stream.append import append

#: Of each answer in its event; the call's result holds all of it.
ANSWER_TOLD = 2000


def _tell(
    session: Session, interrupt: Interrupt, type: str, at: datetime, /, **payload: object
) -> None:
    common = {"interrupt_id": interrupt.pk, "call_id": interrupt.call_id, "kind": interrupt.kind}
    append(
        session,
        type,
        {**common, **payload, "session": standing(session)},
        at,
        step_id=interrupt.step_id,
    )


def _requested(session: Session, body: fact.ApprovalRequested, at: datetime) -> None:
    call = session.calls.get(call_id=body.call_id)
    model_step = session.steps.get(step_id=call.model_step)
    interrupt = Interrupt.objects.create(
        id=body.interrupt_id,
        session=session,
        step_id=body.step_id,
        call_id=body.call_id,
        turn=body.turn,
        tool=call.tool,
        effect=call.effect,
        risk=body.risk,
        permission=body.permission,
        args=call.args,
        args_hash=body.args_hash,
        original_args=call.original_args,
        edited_by_name=call.edited_by_name,
        revision=body.revision,
        why=model_step.text,
        deadline=datetime.fromisoformat(body.deadline),
        at_deadline=body.at_deadline,
        policy=asdict(body.policy) if body.policy else {},
        asked_at=at,
    )
    session.waiting += 1
    _tell(
        session,
        interrupt,
        "approval.requested",
        at,
        tool=call.tool,
        permission=body.permission,
        risk=body.risk,
        deadline=body.deadline,
        revision=body.revision,
    )
    enqueue(interrupt, NotificationEvent.ASK, at)


def _asked(session: Session, body: fact.QuestionAsked, at: datetime) -> None:
    call = session.calls.get(call_id=body.call_id)
    model_step = session.steps.get(step_id=call.model_step)
    interrupt = Interrupt.objects.create(
        id=body.interrupt_id,
        kind=Interrupt.Kind.QUESTION,
        session=session,
        step_id=body.step_id,
        call_id=body.call_id,
        turn=body.turn,
        tool=call.tool,
        effect=call.effect,
        args=call.args,
        args_hash=call.args_hash,
        revision=body.revision,
        why=model_step.text,
        deadline=NO_DEADLINE,
        asked_at=at,
    )
    session.waiting += 1
    _tell(
        session,
        interrupt,
        "question.asked",
        at,
        questions=[asdict(question) for question in body.questions],
        revision=body.revision,
    )
    enqueue(interrupt, NotificationEvent.ASK, at)


def _answered(session: Session, body: fact.QuestionAnswered, at: datetime) -> None:
    interrupt = session.interrupts.get(pk=body.interrupt_id)
    interrupt.request_id, interrupt.answers = body.request_id, body.answers
    _end(session, interrupt, Interrupt.State.ANSWERED, body.by, "", at)
    shown = [[text[:ANSWER_TOLD] for text in answer] for answer in body.answers]
    _tell(session, interrupt, "question.answered", at, by=body.by.name, answers=shown)
    enqueue_end(interrupt, at)


def _held(session: Session, body: fact.InterruptHeld, at: datetime) -> None:
    interrupt = session.interrupts.get(pk=body.interrupt_id)
    interrupt.hold_by_id = user_of(body.by)
    interrupt.hold_by_name = body.by.name
    interrupt.hold_since = at
    interrupt.hold_until = datetime.fromisoformat(body.until)
    interrupt.save()
    taken_from = body.taken_from.name if body.taken_from else ""
    _tell(
        session,
        interrupt,
        "approval.held",
        at,
        by=body.by.name,
        until=body.until,
        taken_from=taken_from,
    )


def _released(session: Session, body: fact.InterruptReleased, at: datetime) -> None:
    interrupt = session.interrupts.get(pk=body.interrupt_id)
    _let_go(interrupt)
    interrupt.save()
    _tell(session, interrupt, "approval.released", at, by=body.by.name if body.by else "")


def _let_go(interrupt: Interrupt) -> None:
    interrupt.hold_by_id = interrupt.hold_since = interrupt.hold_until = None
    interrupt.hold_by_name = ""


def _reminded(session: Session, body: fact.InterruptReminded, at: datetime) -> None:
    interrupt = session.interrupts.get(pk=body.interrupt_id)
    _tell(session, interrupt, "approval.reminded", at, seconds_left=body.seconds_left)
    enqueue(interrupt, NotificationEvent.REMIND, at)


def _escalated(session: Session, body: fact.InterruptEscalated, at: datetime) -> None:
    interrupt = session.interrupts.get(pk=body.interrupt_id)
    interrupt.permission = body.permission
    interrupt.deadline = datetime.fromisoformat(body.deadline)
    interrupt.level = body.level
    _let_go(interrupt)
    interrupt.save()
    _tell(
        session,
        interrupt,
        "approval.escalated",
        at,
        permission=body.permission,
        deadline=body.deadline,
        level=body.level,
    )
    enqueue(interrupt, NotificationEvent.ESCALATE, at)


def _extended(session: Session, body: fact.DeadlineExtended, at: datetime) -> None:
    """The stream has no event of its own for it: the wait's Step says it."""
    interrupt = session.interrupts.get(pk=body.interrupt_id)
    interrupt.deadline = datetime.fromisoformat(body.deadline)
    interrupt.save()
    _tell(
        session,
        interrupt,
        "step.changed",
        at,
        type="AwaitToolApproval",
        step_id=interrupt.step_id,
        status="waiting",
        outcome="",
        attempt=1,
        turn=interrupt.turn,
        tool=interrupt.tool,
        detail=f"{body.by.name} moved the deadline",
        deadline=body.deadline,
        next_attempt_at=None,
    )


def _voted(session: Session, body: fact.VoteCast, at: datetime) -> None:
    interrupt = session.interrupts.get(pk=body.interrupt_id)
    if body.args:
        _revise(session, interrupt, body)
    Vote.objects.create(
        interrupt=interrupt,
        revision=body.revision,
        verdict=body.verdict,
        person_id=user_of(body.by),
        person_name=body.by.name,
        on_behalf_of_name=body.on_behalf_of.name if body.on_behalf_of else "",
        reason=body.reason,
        edited=bool(body.args),
        at=at,
    )
    votes = interrupt.votes.filter(revision=body.revision)
    _tell(
        session,
        interrupt,
        "approval.voted",
        at,
        by=body.by.name,
        on_behalf_of=body.on_behalf_of.name if body.on_behalf_of else "",
        verdict=body.verdict,
        revision=body.revision,
        edited=bool(body.args),
        approvals=votes.filter(verdict="approve").count(),
        rejections=votes.filter(verdict="reject").count(),
    )
    # Where one word is enough, this very fact is followed by the end.
    if body.args and interrupt.policy.get("approve_n", 1) > 1:
        enqueue_edit(interrupt, body.by, at)


def _revise(session: Session, interrupt: Interrupt, body: fact.VoteCast) -> None:
    """Edited arguments are what runs from here on; what the agent asked for is kept beside them."""
    interrupt.original_args = interrupt.original_args or interrupt.args
    interrupt.args, interrupt.args_hash = body.args, body.args_hash
    interrupt.revision = body.revision
    interrupt.edited_by_name = body.by.name
    interrupt.save()
    call = session.calls.get(call_id=interrupt.call_id)
    call.original_args = call.original_args or call.args
    call.args, call.args_hash = body.args, body.args_hash
    call.edited_by_name = body.by.name
    call.save()


def _closed(session: Session, body: fact.InterruptClosed, at: datetime) -> None:
    interrupt = session.interrupts.get(pk=body.interrupt_id)
    interrupt.request_id = body.request_id
    close_interrupt(session, interrupt, body.state, body.by, body.reason, at)


def close_interrupt(
    session: Session,
    interrupt: Interrupt,
    state: str,
    by: terms.Actor | None,
    reason: str,
    at: datetime,
) -> None:
    """The wait is over. ``by`` is None unless a person decided."""
    _end(session, interrupt, state, by, reason, at)
    types = {"approved": "decided", "rejected": "decided", "expired": "expired"}
    _tell(
        session,
        interrupt,
        f"approval.{types.get(state, 'canceled')}",
        at,
        verdict=state,
        by=interrupt.decided_by_name,
        reason=reason,
    )
    enqueue_end(interrupt, at)


def _end(
    session: Session,
    interrupt: Interrupt,
    state: str,
    by: terms.Actor | None,
    reason: str,
    at: datetime,
) -> None:
    interrupt.state = state
    interrupt.decided_at = at
    interrupt.decided_by_id = user_of(by)
    interrupt.decided_by_name = by.name if by else ""
    interrupt.reason = reason
    _let_go(interrupt)
    interrupt.save()
    session.waiting = max(0, session.waiting - 1)


def invalidate(session: Session, interrupt_id: str, at: datetime) -> None:
    """An approval was refused at dispatch; nothing to do for a call that needed none."""
    interrupt = session.interrupts.filter(pk=interrupt_id).first()
    if interrupt is None:
        return
    interrupt.state = Interrupt.State.INVALIDATED
    interrupt.save(update_fields=["state"])
    enqueue_end(interrupt, at)


INTERRUPT_HANDLERS: dict[type, Callable[[Session, Any, datetime], None]] = {
    fact.ApprovalRequested: _requested,
    fact.QuestionAsked: _asked,
    fact.QuestionAnswered: _answered,
    fact.InterruptHeld: _held,
    fact.InterruptReleased: _released,
    fact.InterruptReminded: _reminded,
    fact.InterruptEscalated: _escalated,
    fact.DeadlineExtended: _extended,
    fact.VoteCast: _voted,
    fact.InterruptClosed: _closed,
}
