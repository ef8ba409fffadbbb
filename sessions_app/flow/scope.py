"""What the parts of one turn share: who it is, what it tells, and how it is canceled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from sessions_app.flow import rules
    from sessions_app.flow.fact import CallClosed, MessageTakenIn, StepChanged
    from sessions_app.flow.interrupts import Interrupts
    from sessions_app.flow.recorder import FactLog, StepLog
    from sessions_app.flow.spend import Spend
    from sessions_app.flow.state import SessionInput, StepContext, ToolCallPlan
    from sessions_app.flow.terms import UserMessage
    from sessions_app.flow.timers import Timers

ONE_ATTEMPT = RetryPolicy(maximum_attempts=1)


class Scope:
    """One turn's numbers, logs and running work."""

    def __init__(
        self,
        given: SessionInput,
        number: int,
        facts: FactLog,
        steps: StepLog,
        interrupts: Interrupts,
        set_phase: Callable[[str], None],
        steered: list[UserMessage],
        spend: Spend,
    ) -> None:
        self.given = given
        self.limits = given.limits
        self.number = number
        self.facts = facts
        self.steps = steps
        self.interrupts = interrupts
        self.set_phase = set_phase
        self.steered = steered
        self.timers = Timers(facts)
        #: How many tools run now.
        self.acting = 0
        self.spend = spend
        self.canceled = False
        # In order: a set's is another one when the same history is replayed.
        self._running: dict[asyncio.Task[Any], None] = {}

    def cancel(self) -> None:
        """Cancel what runs, once; each call still gets its outcome before the turn ends."""
        if self.canceled:
            return
        self.canceled = True
        for task in list(self._running):
            task.cancel()

    async def cancellable(self, work: Coroutine[Any, Any, Any]) -> Any:
        """The result of ``work``, or None when it was canceled before it had one."""
        if self.canceled:
            work.close()
            return None
        task = asyncio.create_task(work)
        self._running[task] = None
        try:
            return await task
        except (asyncio.CancelledError, ActivityError) as error:
            # An activity that the cancel meets fails by it, in the engine's own way.
            if not self.canceled or not is_cancelled_exception(error):
                raise
            return None
        finally:
            self._running.pop(task, None)

    def take_steered(self, step: StepChanged) -> None:
        """What people steered in is read by ``step``, a model call, and by those after it."""
        for message in self.steered:
            self.facts.add(
                MessageTakenIn("message_taken_in", message.message_id, self.number, step.step_id)
            )
        self.steered.clear()

    def show_phase(self) -> None:
        """Tell the phase anew, by what the turn's calls are at."""
        approvals, asked = self.interrupts.open_of("approval"), self.interrupts.open_of("question")
        self.set_phase(rules.phase_of(approvals, asked, self.acting, self.timers.open))

    def new(
        self,
        type: str,
        call: ToolCallPlan,
        cause: str,
        status: str,
        outcome: str = "",
        detail: str = "",
    ) -> StepChanged:
        """A Step of ``call`` appears."""
        return self.steps.new(
            type, self.number, [cause], status, call.call_id, call.tool, outcome, detail
        )

    def context(self, step: StepChanged, attempt: int) -> StepContext:
        info = workflow.info()
        return StepContext(
            self.given.session_id,
            step.step_id,
            attempt,
            self.number,
            self.facts.unrecorded(),
            info.get_current_history_length(),
            info.get_current_history_size(),
        )

    def run_is_full(self) -> bool:
        """Whether this run comes near what the engine keeps of one; only between turns a new begins."""
        info = workflow.info()
        return (
            info.get_current_history_length() >= self.limits.last_events
            or info.get_current_history_size() >= self.limits.last_bytes
        )

    def close(self, call: ToolCallPlan, step: StepChanged, outcome: str, words: str) -> None:
        """``call`` ends without its tool's answer."""
        self.facts.add(CallClosed("call_closed", call.call_id, step.step_id, outcome, words))

    async def pause(self, step: StepChanged, attempt: int, why: str, backoff: float) -> None:
        """Wait before the next attempt; people see which one comes when."""
        wait = timedelta(seconds=rules.backoff(attempt, backoff))
        self.steps.change(
            step,
            "scheduled",
            outcome="retrying",
            detail=why,
            attempt=attempt + 1,
            next_attempt_at=(workflow.now() + wait).isoformat(),
        )
        await self.facts.flush()
        await workflow.sleep(wait)
