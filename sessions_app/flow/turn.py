"""One turn: model calls, and the tool calls of each in parallel, joined before the next."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError

with workflow.unsafe.imports_passed_through():
    from sessions_app.flow import rules
    from sessions_app.flow.fact import CallClosed, StepChanged
    from sessions_app.flow.interrupts import Interrupts, approved_call
    from sessions_app.flow.recorder import FactLog, StepLog
    from sessions_app.flow.rules import Reach
    from sessions_app.flow.state import (
        CALL_TOOL,
        RECONCILE_CALL,
        RUN_MODEL,
        Approval,
        CallToolInput,
        ReconcileInput,
        RunModelInput,
        RunModelResult,
        SessionInput,
        StepContext,
        ToolCallPlan,
        ToolCallResult,
    )

ONE_ATTEMPT = RetryPolicy(maximum_attempts=1)


class Turn:
    """Runs one turn to its end, or until `cancel`."""

    def __init__(
        self,
        given: SessionInput,
        number: int,
        facts: FactLog,
        steps: StepLog,
        interrupts: Interrupts,
        set_phase: Callable[[str], None],
    ) -> None:
        self.number = number
        self.canceled = False
        self._given = given
        self._limits = given.limits
        self._facts = facts
        self._steps = steps
        self._interrupts = interrupts
        self._set_phase = set_phase
        self._running: set[asyncio.Task[Any]] = set()
        self._acting = 0
        self._unfinished = 0

    def cancel(self) -> None:
        """Cancel what runs; each call still gets its outcome before `run` returns."""
        self.canceled = True
        for task in self._running:
            task.cancel()

    async def run(self, cause: str) -> tuple[str, str, str]:
        """Returns (state, reason, id of the last Step): state is completed, failed or canceled."""
        for _ in range(self._limits.model_calls_per_turn):
            self._set_phase("thinking")
            step = self._steps.new("RunModel", self.number, [cause])
            result = await self._cancellable(self._run_model(step))
            cause = step.step_id
            if result is None:
                self._steps.change(step, "canceled", outcome="canceled")
            if result is None or self.canceled:
                return "canceled", "", cause
            if result.error:
                return "failed", result.error, cause
            if not result.calls:
                return "completed", "", cause
            cause = await self._run_calls(step, result.calls)
            if self.canceled:
                return "canceled", "", cause
        limit = self._limits.model_calls_per_turn
        return "failed", f"The turn reached its limit of {limit} model calls.", cause

    async def _cancellable(self, work: Coroutine[Any, Any, Any]) -> Any:
        """The result of ``work``, or None when it was canceled before it had one."""
        if self.canceled:
            work.close()
            return None
        task = asyncio.create_task(work)
        self._running.add(task)
        try:
            return await task
        except asyncio.CancelledError:
            if not self.canceled:
                raise
            return None
        finally:
            self._running.discard(task)

    # The model --------------------------------------------------------------------------------

    async def _run_model(self, step: StepChanged) -> RunModelResult:
        attempts = self._limits.model_attempts
        for attempt in range(1, attempts + 1):
            result = await self._attempt_model(step, attempt, last=attempt == attempts)
            if not result.error or not result.retryable or attempt == attempts or self.canceled:
                break
            await self._pause(step, attempt, result.error)
        if result.error:
            status = "canceled" if self.canceled else "failed"
            self._steps.change(step, status, outcome=status, detail=result.error, attempt=attempt)
        return result

    async def _attempt_model(self, step: StepChanged, attempt: int, last: bool) -> RunModelResult:
        context = self._context(step, attempt)
        try:
            result: RunModelResult = await workflow.execute_activity(
                RUN_MODEL,
                RunModelInput(context, self._given.agent, last),
                result_type=RunModelResult,
                start_to_close_timeout=timedelta(seconds=self._limits.model_timeout),
                heartbeat_timeout=timedelta(seconds=self._limits.heartbeat),
                retry_policy=ONE_ATTEMPT,
                cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
                summary=step.step_id,
            )
        except ActivityError as error:
            why = rules.cut_off_words(error)
            canceled = rules.reach_of(error) == Reach.CANCELED
            return RunModelResult(
                error=f"The model call was cut off: {why}.", retryable=not canceled
            )
        self._facts.confirm(context.facts)
        return result

    # Tool calls -------------------------------------------------------------------------------

    async def _run_calls(self, model_step: StepChanged, calls: list[ToolCallPlan]) -> str:
        """Run ``calls`` in parallel, join them in a ResumeTurn Step, and return its id."""
        handles = [self._plan(model_step, call, index) for index, call in enumerate(calls)]
        last_steps = {index: step.step_id for index, (_, step) in enumerate(handles)}
        resume = self._steps.new(
            "ResumeTurn", self.number, list(last_steps.values()), status="planned"
        )
        self._unfinished = len(calls)
        work = [
            self._finish(self._handle(index, call, wait, step, last_steps))
            for index, (call, (wait, step)) in enumerate(zip(calls, handles, strict=True))
        ]
        outcomes: list[str | None] = await asyncio.gather(*work)
        for call, outcome, (_, step) in zip(calls, outcomes, handles, strict=True):
            if outcome is None:
                self._close(call, step, "canceled", rules.canceled_words(call.tool))
                self._steps.change(step, "canceled", outcome="canceled")
        count = f"{len(calls)} result{'' if len(calls) == 1 else 's'}"
        self._steps.change(resume, "completed", detail=count, causes=list(last_steps.values()))
        return resume.step_id

    async def _finish(self, work: Coroutine[Any, Any, str]) -> str | None:
        """The outcome of a call, or None when it was canceled; told before others are waited for."""
        outcome: str | None = await self._cancellable(work)
        self._unfinished -= 1
        if self._unfinished:
            await self._facts.flush()
        return outcome

    def _plan(
        self, model_step: StepChanged, call: ToolCallPlan, index: int
    ) -> tuple[StepChanged | None, StepChanged]:
        """The Steps that ``call`` will take: (wait for approval or None, the call itself)."""
        error = call.error
        if not error and index >= self._limits.parallel_calls:
            error = rules.too_many_words(call.tool, self._limits.parallel_calls)
        if error:
            step = self._new(
                "RecordToolFailure", call, model_step.step_id, "completed", "failed", error
            )
            self._close(call, step, "failed", error)
            return None, step
        if call.approval is None:
            return None, self._new(rules.step_type(call), call, model_step.step_id, "scheduled")
        wait = self._new("AwaitToolApproval", call, model_step.step_id, "waiting")
        return wait, self._new(rules.step_type(call), call, wait.step_id, "planned")

    async def _handle(
        self,
        index: int,
        call: ToolCallPlan,
        wait: StepChanged | None,
        step: StepChanged,
        last_steps: dict[int, str],
    ) -> str:
        """Bring ``call`` to its outcome. A voided approval is asked for anew, by the policy in force."""
        if step.type == "RecordToolFailure":
            return "failed"
        while True:
            approval = None
            if wait is not None:
                approved = await self._await_approval(call, wait, step)
                if approved is None:
                    return "refused"
                call, approval = approved
            result = await self._run_tool(call, step, approval, index, last_steps)
            if result.ask_again is None:
                return result.outcome
            call = replace(call, approval=result.ask_again)
            wait = self._new("AwaitToolApproval", call, step.step_id, "waiting")
            step = self._new(rules.step_type(call), call, wait.step_id, "planned")
            last_steps[index] = step.step_id

    async def _await_approval(
        self, call: ToolCallPlan, wait: StepChanged, step: StepChanged
    ) -> tuple[ToolCallPlan, Approval] | None:
        """The call as approved, and by whom; None when it must not run (its outcome is then told)."""
        assert call.approval is not None
        interrupt = self._interrupts.ask(call, call.approval, wait)
        self._set_phase(self._phase())
        try:
            await self._facts.flush()
            await self._interrupts.wait(interrupt)
        except asyncio.CancelledError:
            if interrupt.state == "pending":
                self._interrupts.close(interrupt, "canceled")
            self._steps.change(wait, "canceled", outcome="canceled")
            self._set_phase(self._phase())
            raise
        by = interrupt.by.name if interrupt.by else ""
        detail = interrupt.reason or (f"by {by}" if by else "")
        self._steps.change(wait, "completed", outcome=interrupt.state, detail=detail)
        self._set_phase(self._phase())
        if interrupt.state == "approved":
            self._steps.change(step, "scheduled")
            return approved_call(interrupt), interrupt.approval()
        words = (
            rules.rejected_words(call.tool, by, interrupt.reason)
            if interrupt.state == "rejected"
            else rules.expired_words(call.tool)
        )
        self._close(call, wait, interrupt.state, words)
        self._steps.change(step, "canceled", outcome=interrupt.state)
        return None

    async def _run_tool(
        self,
        call: ToolCallPlan,
        step: StepChanged,
        approval: Approval | None,
        index: int,
        last_steps: dict[int, str],
    ) -> ToolCallResult:
        attempts = rules.attempts_for(call, self._limits.tool_attempts)
        self._acting += 1
        self._set_phase(self._phase())
        try:
            for attempt in range(1, attempts + 1):
                last = attempt == attempts
                result = await self._attempt_tool(call, step, approval, attempt, last)
                if not result.retryable or last or self.canceled:
                    break
                await self._pause(step, attempt, result.words)
            if result.outcome == "outcome_unknown":
                last_steps[index] = self._tell_unknown(call, step, result, attempt)
            return result
        finally:
            self._acting -= 1
            self._set_phase(self._phase())

    async def _attempt_tool(
        self,
        call: ToolCallPlan,
        step: StepChanged,
        approval: Approval | None,
        attempt: int,
        last: bool,
    ) -> ToolCallResult:
        context = self._context(step, attempt)
        try:
            result: ToolCallResult = await workflow.execute_activity(
                CALL_TOOL,
                CallToolInput(context, self._given.agent, call, approval, last),
                result_type=ToolCallResult,
                schedule_to_start_timeout=timedelta(seconds=self._limits.schedule_to_start),
                start_to_close_timeout=timedelta(seconds=call.timeout),
                heartbeat_timeout=timedelta(seconds=self._limits.heartbeat),
                retry_policy=ONE_ATTEMPT,
                cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
                summary=f"{step.step_id} {call.tool}",
            )
        except ActivityError as error:
            return await self._without_result(call, step, attempt, last, error)
        self._facts.confirm(context.facts)
        return result

    async def _without_result(
        self, call: ToolCallPlan, step: StepChanged, attempt: int, last: bool, error: ActivityError
    ) -> ToolCallResult:
        """The attempt brought no result: the rows know how far it came."""
        if rules.reach_of(error) == Reach.NEVER_TAKEN:
            untaken = rules.never_taken(call)
            self._close(call, step, untaken.outcome, untaken.words)
            self._steps.change(step, "failed", outcome="failed", detail=untaken.words)
            return untaken
        context = self._context(step, attempt)
        canceled = self.canceled or rules.reach_of(error) == Reach.CANCELED
        result: ToolCallResult = await workflow.execute_activity(
            RECONCILE_CALL,
            ReconcileInput(
                context, call.call_id, call.effect, rules.cut_off_words(error), canceled, last
            ),
            result_type=ToolCallResult,
            start_to_close_timeout=timedelta(seconds=30),
        )
        self._facts.confirm(context.facts)
        return result

    def _tell_unknown(
        self, call: ToolCallPlan, step: StepChanged, result: ToolCallResult, attempt: int
    ) -> str:
        self._steps.change(
            step, "failed", outcome="outcome_unknown", detail=result.words, attempt=attempt
        )
        told = self._new(
            "RecordToolOutcomeUnknown",
            call,
            step.step_id,
            "completed",
            "outcome_unknown",
            result.words,
        )
        return told.step_id

    # What the parts share ---------------------------------------------------------------------

    def _new(
        self,
        type: str,
        call: ToolCallPlan,
        cause: str,
        status: str,
        outcome: str = "",
        detail: str = "",
    ) -> StepChanged:
        return self._steps.new(
            type, self.number, [cause], status, call.call_id, call.tool, outcome, detail
        )

    def _context(self, step: StepChanged, attempt: int) -> StepContext:
        return StepContext(
            self._given.session_id, step.step_id, attempt, self.number, self._facts.unrecorded()
        )

    def _close(self, call: ToolCallPlan, step: StepChanged, outcome: str, words: str) -> None:
        self._facts.add(CallClosed("call_closed", call.call_id, step.step_id, outcome, words))

    def _phase(self) -> str:
        if self._interrupts.open:
            return "waiting_approval"
        return "acting"

    async def _pause(self, step: StepChanged, attempt: int, why: str) -> None:
        """Wait before the next attempt; people see which one comes when."""
        wait = timedelta(seconds=rules.backoff(attempt, self._limits.backoff))
        self._steps.change(
            step,
            "scheduled",
            outcome="retrying",
            detail=why,
            attempt=attempt + 1,
            next_attempt_at=(workflow.now() + wait).isoformat(),
        )
        await self._facts.flush()
        await workflow.sleep(wait)
