"""Waits for a person, and the locks that RPCs take."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from sessions_app.flow import rules
    from sessions_app.flow.facts import FactLog
    from sessions_app.flow.state import (
        Actor,
        Approval,
        ApprovalPolicy,
        ApprovalRequested,
        InterruptClosed,
        ResolveInterrupt,
        StepChanged,
        ToolCallPlan,
    )


@dataclass
class Interrupt:
    """One wait. `state` leaves ``pending`` once, here and nowhere else."""

    interrupt_id: str
    call: ToolCallPlan
    policy: ApprovalPolicy
    deadline: datetime
    revision: int = 1
    state: str = "pending"
    by: Actor | None = None
    reason: str = ""
    closed_at: str = ""
    request_id: str = ""

    def approval(self) -> Approval:
        return Approval(self.interrupt_id, self.by, self.closed_at, self.policy.permission)


class Interrupts:
    """The open and recent waits of a session."""

    KEPT = 200

    def __init__(self, facts: FactLog) -> None:
        self._facts = facts
        self._all: dict[str, Interrupt] = {}

    @property
    def open(self) -> int:
        return sum(1 for interrupt in self._all.values() if interrupt.state == "pending")

    def ask(self, call: ToolCallPlan, policy: ApprovalPolicy, step: StepChanged) -> Interrupt:
        interrupt = Interrupt(
            interrupt_id=f"apr-{workflow.uuid4().hex[:20]}",
            call=call,
            policy=policy,
            deadline=workflow.now() + timedelta(seconds=policy.deadline),
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
                deadline=interrupt.deadline.isoformat(),
                at_deadline=policy.at_deadline,
            )
        )
        return interrupt

    async def wait(self, interrupt: Interrupt) -> None:
        """Return once the wait has ended: by a person, or by its deadline."""
        left = interrupt.deadline - workflow.now()
        try:
            await workflow.wait_condition(
                lambda: interrupt.state != "pending", timeout=max(left, timedelta(0))
            )
        except TimeoutError:
            # A decision accepted in this same instant has already closed it: one outcome.
            if interrupt.state == "pending":
                self._expire(interrupt)
        except asyncio.CancelledError:
            if interrupt.state == "pending":
                self.close(interrupt, "canceled")
            raise

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
        interrupt.request_id = request_id
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

    def check(self, rpc: ResolveInterrupt) -> Interrupt:
        """The pending interrupt that ``rpc`` names, or the refusal that fits."""
        interrupt = self._all.get(rpc.interrupt_id)
        if interrupt is None:
            raise rules.refuse("interrupt_not_found", interrupt_id=rpc.interrupt_id)
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
        if (rpc.revision, rpc.args_hash) != (interrupt.revision, interrupt.call.args_hash):
            raise rules.refuse(
                "stale_interrupt",
                interrupt_id=interrupt.interrupt_id,
                revision=interrupt.revision,
                args_hash=interrupt.call.args_hash,
            )
        return interrupt

    def _expired(self, interrupt: Interrupt) -> Exception:
        return rules.refuse(
            "interrupt_expired",
            interrupt_id=interrupt.interrupt_id,
            deadline=interrupt.deadline.isoformat(),
            at_deadline=interrupt.policy.at_deadline,
        )

    def _expire(self, interrupt: Interrupt) -> None:
        # A write never runs because nobody answered, whatever its policy says.
        runs = interrupt.policy.at_deadline == "approve" and interrupt.call.effect != "write"
        if runs:
            self.close(interrupt, "approved", reason="Nobody objected before the deadline.")
        else:
            self.close(interrupt, "expired")

    def _forget_old(self) -> None:
        closed = [key for key, interrupt in self._all.items() if interrupt.state != "pending"]
        for key in closed[: max(0, len(self._all) - self.KEPT)]:
            del self._all[key]


@dataclass(frozen=True)
class Lock:
    holder: str
    since: str


class Locks:
    """Attribute locks: taken before an RPC acts, never waited for."""

    def __init__(self) -> None:
        self._held: dict[str, Lock] = {}

    def check(self, *keys: str) -> None:
        """Refuse when one of ``keys`` is held."""
        held = [key for key in keys if key in self._held]
        if held:
            lock = self._held[held[0]]
            raise rules.refuse(
                "rpc_lock_conflict",
                keys=held,
                holder=lock.holder,
                lock_kind="rpc",
                since=lock.since,
            )

    @contextmanager
    def taken(self, holder: str, *keys: str) -> Iterator[None]:
        self.check(*keys)
        lock = Lock(holder, workflow.now().isoformat())
        self._held.update(dict.fromkeys(keys, lock))
        try:
            yield
        finally:
            for key in keys:
                self._held.pop(key, None)
