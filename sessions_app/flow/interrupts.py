"""Waits for a person: votes, holds, reminders, escalation and the deadline."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from sessions_app.flow import questions, rules
    from sessions_app.flow.fact import (
        ApprovalRequested,
        DeadlineExtended,
        InterruptClosed,
        InterruptEscalated,
        InterruptHeld,
        InterruptReleased,
        InterruptReminded,
        QuestionAnswered,
        QuestionAsked,
        StepChanged,
        VoteCast,
    )
    from sessions_app.flow.interrupt import Hold, Interrupt
    from sessions_app.flow.recorder import FactLog
    from sessions_app.flow.state import (
        AnswerQuestion,
        ExtendDeadline,
        HoldInterrupt,
        ResolveInterrupt,
        ToolCallPlan,
    )
    from sessions_app.flow.terms import Actor, ApprovalPolicy

LONGEST_HOLD = 600.0
#: A question is for whoever operates the session, for as long as it takes.
NO_POLICY = ApprovalPolicy("", "", 0, "reject")


class Interrupts:
    """The open and recent waits of a session."""

    KEPT = 200

    def __init__(self, facts: FactLog) -> None:
        self._facts = facts
        self._all: dict[str, Interrupt] = {}

    def open_of(self, kind: str) -> int:
        return sum(1 for one in self._all.values() if one.state == "pending" and one.kind == kind)

    def ask(self, call: ToolCallPlan, policy: ApprovalPolicy, step: StepChanged) -> Interrupt:
        deadline = workflow.now() + timedelta(seconds=policy.deadline)
        interrupt = Interrupt(
            interrupt_id=f"apr-{workflow.uuid4().hex[:20]}",
            call=call,
            policy=policy,
            permission=policy.permission,
            deadline=deadline,
            args_hash=call.args_hash,
            reminders=_reminders(policy, deadline),
        )
        self._all[interrupt.interrupt_id] = interrupt
        self._forget_old()
        self._facts.add(
            ApprovalRequested(
                "approval_requested",
                interrupt_id=interrupt.interrupt_id,
                step_id=step.step_id,
                call_id=call.call_id,
                turn=step.turn,
                permission=policy.permission,
                risk=policy.risk,
                revision=interrupt.revision,
                args_hash=call.args_hash,
                deadline=deadline.isoformat(),
                at_deadline=policy.at_deadline,
                policy=policy,
            )
        )
        return interrupt

    def ask_question(self, call: ToolCallPlan, step: StepChanged) -> Interrupt:
        interrupt = Interrupt(
            interrupt_id=f"qst-{workflow.uuid4().hex[:20]}",
            call=call,
            policy=NO_POLICY,
            permission="",
            deadline=questions.NO_DEADLINE,
            args_hash=call.args_hash,
            reminders=[],
            kind="question",
        )
        self._all[interrupt.interrupt_id] = interrupt
        self._forget_old()
        self._facts.add(
            QuestionAsked(
                "question_asked",
                interrupt_id=interrupt.interrupt_id,
                step_id=step.step_id,
                call_id=call.call_id,
                turn=step.turn,
                questions=call.questions,
                revision=interrupt.revision,
            )
        )
        return interrupt

    async def wait(self, interrupt: Interrupt) -> None:
        """Return once the wait has ended: by people, or by its deadline."""
        try:
            while interrupt.state == "pending":
                await self._until(interrupt, interrupt.next_alarm())
        except asyncio.CancelledError:
            if interrupt.state == "pending":
                self.close(interrupt, "canceled")
            raise

    async def _until(self, interrupt: Interrupt, alarm: datetime) -> None:
        """Wait until the alarm, or until something makes it another one."""
        endless = alarm == questions.NO_DEADLINE
        left = None if endless else max(alarm - workflow.now(), timedelta(0))
        try:
            await workflow.wait_condition(
                lambda: interrupt.state != "pending" or interrupt.next_alarm() != alarm,
                timeout=left,
            )
        except TimeoutError:
            # A decision accepted in this same instant has already closed it: one outcome.
            if interrupt.state == "pending":
                self._ring(interrupt)
            # What ends the wait is told by the Step that follows; a reminder has none.
            if interrupt.state == "pending":
                await self._facts.flush()

    def _ring(self, interrupt: Interrupt) -> None:
        """What is due by now, and only the first of it: the loop comes back for the rest."""
        now = workflow.now()
        if interrupt.deadline <= now:
            self._at_deadline(interrupt)
        elif interrupt.reminders and min(interrupt.reminders) <= now:
            interrupt.reminders.remove(min(interrupt.reminders))
            left = (interrupt.deadline - now).total_seconds()
            self._facts.add(InterruptReminded("interrupt_reminded", interrupt.interrupt_id, left))
        elif interrupt.hold and interrupt.hold.until <= now:
            self.let_go(interrupt, by=None)

    def _at_deadline(self, interrupt: Interrupt) -> None:
        policy = interrupt.policy
        if policy.at_deadline == "escalate" and interrupt.level < len(policy.escalation):
            self._escalate(interrupt)
        # A write never runs because nobody answered, whatever its policy says.
        elif policy.at_deadline == "approve" and interrupt.call.effect != "write":
            self.close(interrupt, "approved", reason="Nobody objected before the deadline.")
        else:
            self.close(interrupt, "expired")

    def _escalate(self, interrupt: Interrupt) -> None:
        step = interrupt.policy.escalation[interrupt.level]
        interrupt.level += 1
        interrupt.permission = step.permission
        interrupt.deadline = workflow.now() + timedelta(seconds=step.deadline)
        interrupt.reminders = _reminders(interrupt.policy, interrupt.deadline)
        interrupt.hold = None
        self._facts.add(
            InterruptEscalated(
                "interrupt_escalated",
                interrupt.interrupt_id,
                interrupt.permission,
                interrupt.deadline.isoformat(),
                interrupt.level,
            )
        )

    def close(
        self,
        interrupt: Interrupt,
        state: str,
        by: Actor | None = None,
        reason: str = "",
        request_id: str = "",
    ) -> None:
        interrupt.state = state
        interrupt.by = by
        interrupt.reason = reason
        interrupt.hold = None
        interrupt.closed_at = workflow.now().isoformat()
        self._facts.add(
            InterruptClosed(
                "interrupt_closed",
                interrupt_id=interrupt.interrupt_id,
                state=state,  # type: ignore[arg-type]
                by=by,
                reason=reason,
                request_id=request_id,
            )
        )

    def supersede(self, reason: str) -> None:
        """End all open waits undecided, since people said something that comes before them."""
        for interrupt in self._all.values():
            if interrupt.state == "pending":
                self.close(interrupt, "superseded", reason=reason)

    # What people do ---------------------------------------------------------------------------

    def vote(self, interrupt: Interrupt, rpc: ResolveInterrupt) -> str:
        """Count a person's word; returns what the interrupt is then. An edit starts a revision."""
        if rpc.edited_args and rpc.edited_hash != interrupt.args_hash:
            interrupt.revision += 1
            interrupt.args_hash = rpc.edited_hash
            interrupt.votes.clear()
        interrupt.votes[rpc.actor.id] = rpc
        if interrupt.hold and interrupt.hold.by.id == rpc.actor.id:
            self.let_go(interrupt, by=rpc.actor)
        policy = interrupt.policy
        decides = max(policy.approve_n, policy.deny_m) > 1 or bool(rpc.edited_args)
        if decides:
            self._tell_vote(interrupt, rpc)
        if interrupt.count("reject") >= max(1, policy.deny_m):
            self.close(interrupt, "rejected", rpc.actor, rpc.reason, rpc.request_id)
        elif interrupt.count("approve") >= max(1, policy.approve_n):
            self.close(interrupt, "approved", rpc.actor, rpc.reason, rpc.request_id)
        return interrupt.state

    def answer(self, interrupt: Interrupt, rpc: AnswerQuestion) -> None:
        """Close it with the answers that `check_answer` found to fit."""
        interrupt.state, interrupt.by = "answered", rpc.actor
        interrupt.answers, interrupt.hold = rpc.answers, None
        interrupt.closed_at = workflow.now().isoformat()
        self._facts.add(
            QuestionAnswered(
                "question_answered",
                interrupt.interrupt_id,
                rpc.answers,
                rpc.actor,
                rpc.request_id,
            )
        )

    def _tell_vote(self, interrupt: Interrupt, rpc: ResolveInterrupt) -> None:
        self._facts.add(
            VoteCast(
                "vote_cast",
                interrupt.interrupt_id,
                interrupt.revision,
                rpc.verdict,
                rpc.actor,
                rpc.on_behalf_of,
                rpc.reason,
                rpc.request_id,
                rpc.edited_args,
                rpc.edited_hash,
            )
        )

    def keep(self, interrupt: Interrupt, rpc: HoldInterrupt) -> Hold:
        """Put a person's name on it for a while; `check_hold` said that nobody else's is."""
        now = workflow.now()
        before = interrupt.hold
        seconds = min(max(rpc.seconds, 1.0), LONGEST_HOLD)
        hold = Hold(rpc.actor, now, now + timedelta(seconds=seconds))
        interrupt.hold = hold
        taken_from = before.by if before and before.by.id != rpc.actor.id else None
        self._facts.add(
            InterruptHeld(
                "interrupt_held",
                interrupt.interrupt_id,
                rpc.actor,
                hold.until.isoformat(),
                taken_from,
            )
        )
        return hold

    def let_go(self, interrupt: Interrupt, by: Actor | None) -> None:
        interrupt.hold = None
        self._facts.add(InterruptReleased("interrupt_released", interrupt.interrupt_id, by))

    def extend(self, interrupt: Interrupt, rpc: ExtendDeadline) -> None:
        interrupt.deadline = datetime.fromisoformat(rpc.until)
        interrupt.reminders = _reminders(interrupt.policy, interrupt.deadline)
        self._facts.add(
            DeadlineExtended(
                "deadline_extended",
                interrupt.interrupt_id,
                interrupt.deadline.isoformat(),
                rpc.actor,
            )
        )

    # What is refused --------------------------------------------------------------------------

    def check(self, rpc: ResolveInterrupt) -> Interrupt:
        """The interrupt that ``rpc`` may resolve, or the refusal that fits."""
        interrupt = self._pending_of("approval", rpc.interrupt_id)
        if (rpc.revision, rpc.args_hash) != (interrupt.revision, interrupt.args_hash):
            raise _stale(interrupt)
        self.check_hold(interrupt, rpc.actor)
        vote = None if rpc.edited_args else interrupt.vote_of(rpc)
        if vote is not None:
            raise rules.refuse(
                "already_voted",
                interrupt_id=interrupt.interrupt_id,
                verdict=vote.verdict,
                by=vote.actor.name if vote.actor.id != rpc.actor.id else "",
            )
        return interrupt

    def check_answer(self, rpc: AnswerQuestion) -> Interrupt:
        """The question that ``rpc`` may answer, or the refusal that fits."""
        interrupt = self._pending_of("question", rpc.interrupt_id)
        if rpc.revision != interrupt.revision:
            raise _stale(interrupt)
        self.check_hold(interrupt, rpc.actor)
        found = questions.faults(interrupt.call.questions, rpc.answers)
        if found:
            raise rules.refuse("invalid_arguments", errors=found)
        return interrupt

    def check_no_question(self) -> None:
        """Refuse what is not to be said while the agent waits for an answer."""
        waiting = (one for one in self._all.values() if one.kind == "question")
        for one in waiting:
            if one.state == "pending":
                raise rules.refuse("question_open", interrupt_id=one.interrupt_id)

    def _pending_of(self, kind: str, interrupt_id: str) -> Interrupt:
        interrupt = self.pending(interrupt_id)
        if interrupt.kind != kind:
            raise rules.refuse("wrong_kind", interrupt_id=interrupt_id, kind=interrupt.kind)
        return interrupt

    def pending(self, interrupt_id: str) -> Interrupt:
        """The open interrupt of this id, before its deadline."""
        interrupt = self._all.get(interrupt_id)
        if interrupt is None:
            raise rules.refuse("interrupt_not_found", interrupt_id=interrupt_id)
        if interrupt.state == "expired":
            raise self._expired(interrupt)
        if interrupt.state != "pending":
            raise rules.refuse(
                "interrupt_already_decided",
                interrupt_id=interrupt.interrupt_id,
                state=interrupt.state,
                by=interrupt.by.name if interrupt.by else "",
                at=interrupt.closed_at,
                reason=interrupt.reason,
            )
        if workflow.now() >= interrupt.deadline:
            raise self._expired(interrupt)
        return interrupt

    def check_hold(self, interrupt: Interrupt, actor: Actor) -> None:
        """Refuse while another person holds it."""
        hold = interrupt.hold
        if hold is None or hold.by.id == actor.id or hold.until <= workflow.now():
            return
        raise rules.refuse(
            "rpc_lock_conflict",
            keys=[f"interrupt:{interrupt.interrupt_id}"],
            holder=hold.by.name,
            lock_kind="hold",
            since=hold.since.isoformat(),
            until=hold.until.isoformat(),
        )

    def check_extension(self, rpc: ExtendDeadline) -> None:
        """Refuse a moment that is past, takes time from others, or would keep it open for ever."""
        interrupt = self._pending_of("approval", rpc.interrupt_id)
        until, now = datetime.fromisoformat(rpc.until), workflow.now()
        latest = now + timedelta(seconds=rules.longest_wait(interrupt.policy))
        if until <= now:
            raise rules.refuse("deadline_in_past", until=rpc.until)
        if until < interrupt.deadline:
            deadline = interrupt.deadline.isoformat()
            raise rules.refuse("deadline_not_later", until=rpc.until, deadline=deadline)
        if until > latest:
            raise rules.refuse("deadline_too_far", until=rpc.until, latest=latest.isoformat())

    def _expired(self, interrupt: Interrupt) -> Exception:
        return rules.refuse(
            "interrupt_expired",
            interrupt_id=interrupt.interrupt_id,
            deadline=interrupt.deadline.isoformat(),
            at_deadline=interrupt.policy.at_deadline,
        )

    def _forget_old(self) -> None:
        closed = [key for key, interrupt in self._all.items() if interrupt.state != "pending"]
        for key in closed[: max(0, len(self._all) - self.KEPT)]:
            del self._all[key]


def _stale(interrupt: Interrupt) -> Exception:
    return rules.refuse(
        "stale_interrupt",
        interrupt_id=interrupt.interrupt_id,
        revision=interrupt.revision,
        args_hash=interrupt.args_hash,
    )


def _reminders(policy: ApprovalPolicy, deadline: datetime) -> list[datetime]:
    """When to remind: so long before the deadline, unless that is past already."""
    moments = [deadline - timedelta(seconds=before) for before in policy.reminders]
    return sorted(moment for moment in moments if moment > workflow.now())
