"""The tool calls of one model response: run in parallel, joined before the next model call."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError

with workflow.unsafe.imports_passed_through():
    from sessions_app.flow import delegation, rules, times, waits
    from sessions_app.flow.fact import StepChanged
    from sessions_app.flow.interrupt import approved_call
    from sessions_app.flow.queues import tool_queue
    from sessions_app.flow.rules import Reach
    from sessions_app.flow.scope import ONE_ATTEMPT, Scope
    from sessions_app.flow.state import (
        CALL_TOOL,
        MARKS,
        RECONCILE_CALL,
        Approval,
        CallToolInput,
        ReconcileInput,
        ToolCallPlan,
        ToolCallResult,
    )
    from sessions_app.flow.terms import DELEGATE


class Calls:
    """The calls of a turn, one model response at a time."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._unfinished = 0

    async def run(self, model_step: StepChanged, calls: list[ToolCallPlan]) -> str:
        """Run ``calls`` in parallel, join them in a ResumeTurn Step, and return its id."""
        handles = [self._plan(model_step, call, index) for index, call in enumerate(calls)]
        last_steps = {index: step.step_id for index, (_, step) in enumerate(handles)}
        resume = self._scope.steps.new(
            "ResumeTurn", self._scope.number, list(last_steps.values()), status="planned"
        )
        self._unfinished = len(calls)
        work = [
            self._finish(self._handle(index, call, wait, step, last_steps))
            for index, (call, (wait, step)) in enumerate(zip(calls, handles, strict=True))
        ]
        outcomes: list[str | None] = await asyncio.gather(*work)
        for call, outcome, (_, step) in zip(calls, outcomes, handles, strict=True):
            if outcome is None:
                self._scope.close(call, step, "canceled", rules.canceled_words(call.tool))
                self._scope.steps.change(step, "canceled", outcome="canceled")
        count = f"{len(calls)} result{'' if len(calls) == 1 else 's'}"
        self._scope.steps.change(
            resume, "completed", detail=count, causes=list(last_steps.values())
        )
        return resume.step_id

    async def _finish(self, work: Coroutine[Any, Any, str]) -> str | None:
        """The outcome of a call, or None when it was canceled; told before others are waited for."""
        outcome: str | None = await self._scope.cancellable(work)
        self._unfinished -= 1
        if self._unfinished:
            self._leave_mark()
            await self._scope.facts.flush()
        return outcome

    def _leave_mark(self) -> None:
        """A command for this end, of runs that began before each workflow task left one."""
        if not workflow.patched(MARKS) and workflow.patched("calls-leave-marks"):
            workflow.upsert_memo({"calls_left": self._unfinished})

    def _plan(
        self, model_step: StepChanged, call: ToolCallPlan, index: int
    ) -> tuple[StepChanged | None, StepChanged]:
        """The Steps that ``call`` will take: (wait for approval or None, the call itself)."""
        error = call.error
        if not error and index >= self._scope.limits.parallel_calls:
            error = rules.too_many_words(call.tool, self._scope.limits.parallel_calls)
        if error:
            step = self._scope.new(
                "RecordToolFailure", call, model_step.step_id, "completed", "failed", error
            )
            self._scope.close(call, step, "failed", error)
            return None, step
        if waits.step_type(call):
            return None, self._scope.new(waits.step_type(call), call, model_step.step_id, "waiting")
        if call.approval is None:
            return None, self._scope.new(
                rules.step_type(call), call, model_step.step_id, "scheduled"
            )
        wait = self._scope.new("AwaitToolApproval", call, model_step.step_id, "waiting")
        return wait, self._scope.new(rules.step_type(call), call, wait.step_id, "planned")

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
        if waits.step_type(call):
            return await waits.run(self._scope, call, step)
        while True:
            approval = None
            if wait is not None:
                approved = await self._await_approval(call, wait, step)
                if approved is None:
                    return "refused"
                call, approval = approved
            result = await self._run_tool(call, step, approval, index, last_steps)
            if result.ask_again is None or self._scope.canceled:
                return result.outcome
            call = replace(call, approval=result.ask_again)
            wait = self._scope.new("AwaitToolApproval", call, step.step_id, "waiting")
            step = self._scope.new(rules.step_type(call), call, wait.step_id, "planned")
            last_steps[index] = step.step_id

    async def _await_approval(
        self, call: ToolCallPlan, wait: StepChanged, step: StepChanged
    ) -> tuple[ToolCallPlan, Approval] | None:
        """The call as approved, and by whom; None when it must not run (its outcome is then told)."""
        assert call.approval is not None
        interrupt = self._scope.interrupts.ask(call, call.approval, wait)
        self._scope.show_phase()
        try:
            await self._scope.facts.flush()
            await self._scope.interrupts.wait(interrupt)
        except asyncio.CancelledError:
            if interrupt.state == "pending":
                self._scope.interrupts.close(interrupt, "canceled")
            self._scope.steps.change(wait, "canceled", outcome="canceled")
            self._scope.show_phase()
            raise
        by = interrupt.by.name if interrupt.by else ""
        detail = interrupt.reason or (f"by {by}" if by else "")
        self._scope.steps.change(wait, "completed", outcome=interrupt.state, detail=detail)
        self._scope.show_phase()
        if interrupt.state == "approved":
            self._scope.steps.change(step, "scheduled")
            return approved_call(interrupt), interrupt.approval()
        outcome, words = rules.undecided(call.tool, interrupt.state, by, interrupt.reason)
        self._scope.close(call, wait, outcome, words)
        self._scope.steps.change(step, "canceled", outcome=interrupt.state)
        return None

    async def _run_tool(
        self,
        call: ToolCallPlan,
        step: StepChanged,
        approval: Approval | None,
        index: int,
        last_steps: dict[int, str],
    ) -> ToolCallResult:
        self._scope.acting += 1
        self._scope.show_phase()
        try:
            if call.tool == DELEGATE:
                result, attempt = await delegation.run(self._scope, call, step, approval), 1
            else:
                result, attempt = await self._try_tool(call, step, approval)
            if result.outcome == "outcome_unknown":
                last_steps[index] = self._tell_unknown(call, step, result, attempt)
            return result
        finally:
            self._scope.acting -= 1
            self._scope.show_phase()

    async def _try_tool(
        self, call: ToolCallPlan, step: StepChanged, approval: Approval | None
    ) -> tuple[ToolCallResult, int]:
        """(how it ended, after how many attempts)."""
        terms = times.of_tool(call, self._scope.limits)
        attempts, may_have_run = terms.attempts, False
        for attempt in range(1, rules.MOST_ATTEMPTS + 1):
            last = attempt >= attempts
            result = await self._attempt_tool(call, step, approval, attempt, last)
            attempts = min(attempts + result.handed_back, rules.MOST_ATTEMPTS)
            may_have_run = may_have_run or result.ran
            if not result.retryable or attempt >= attempts:
                break
            if not await self._pause(step, attempt, result.words, terms.backoff, may_have_run):
                result = self._cancel_between(call, step)
                break
        return result, attempt

    async def _pause(
        self, step: StepChanged, attempt: int, why: str, backoff: float, may_have_run: bool
    ) -> bool:
        """Whether the next attempt may come; a cancel that finds nothing begun goes on as one."""
        try:
            if self._scope.canceled:
                # It came while the attempt was, and was no news to it.
                raise asyncio.CancelledError
            await self._scope.pause(step, attempt, why, backoff)
        except asyncio.CancelledError:
            if not may_have_run or not self._scope.canceled:
                raise
            return False
        return True

    def _cancel_between(self, call: ToolCallPlan, step: StepChanged) -> ToolCallResult:
        """The turn was canceled between two attempts, of which the first may have acted."""
        outcome, words = rules.canceled_after(call.effect, call.tool)
        self._scope.close(call, step, outcome, words)
        if outcome == "canceled":
            self._scope.steps.change(step, "canceled", outcome=outcome, detail=words)
        return ToolCallResult(outcome, words)

    async def _attempt_tool(
        self,
        call: ToolCallPlan,
        step: StepChanged,
        approval: Approval | None,
        attempt: int,
        last: bool,
    ) -> ToolCallResult:
        context, terms = self._scope.context(step, attempt), times.of_tool(call, self._scope.limits)
        try:
            result: ToolCallResult = await workflow.execute_activity(
                CALL_TOOL,
                CallToolInput(context, self._scope.given.agent, call, approval, last),
                result_type=ToolCallResult,
                task_queue=tool_queue(call.pool or self._scope.given.pool),
                schedule_to_start_timeout=terms.schedule_to_start,
                start_to_close_timeout=terms.start_to_close,
                heartbeat_timeout=terms.heartbeat,
                retry_policy=ONE_ATTEMPT,
                cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
                summary=f"{step.step_id} {call.tool}",
            )
        except ActivityError as error:
            return await self._without_result(call, step, attempt, last, error)
        self._scope.facts.confirm(context.facts)
        return result

    async def _without_result(
        self, call: ToolCallPlan, step: StepChanged, attempt: int, last: bool, error: ActivityError
    ) -> ToolCallResult:
        """The attempt brought no result: the rows know how far it came."""
        reach = rules.reach_of(error)
        if reach == Reach.NEVER_TAKEN and attempt == 1:
            untaken = rules.never_taken(call)
            self._scope.close(call, step, untaken.outcome, untaken.words)
            self._scope.steps.change(step, "failed", outcome="failed", detail=untaken.words)
            return untaken
        canceled = self._scope.canceled or reach == Reach.CANCELED
        # A worker's stop is not the tool's fault: it may be tried once more than was allowed.
        handed_back = reach == Reach.HANDED_BACK and attempt < rules.MOST_ATTEMPTS
        last = (last and not handed_back) or reach == Reach.NEVER_TAKEN
        why = rules.cut_off_words(error)
        try:
            result = await self._reconcile(call, step, attempt, why, canceled, last)
        except ActivityError:
            if not self._scope.canceled:
                raise
            # Canceled meanwhile, it is not tried again by itself. Its call gets its outcome all the same.
            result = await self._reconcile(call, step, attempt, why, canceled=True, last=True)
        return replace(result, handed_back=True) if handed_back else result

    async def _reconcile(
        self,
        call: ToolCallPlan,
        step: StepChanged,
        attempt: int,
        why: str,
        canceled: bool,
        last: bool,
    ) -> ToolCallResult:
        """What became of an attempt, as the rows know it."""
        context = self._scope.context(step, attempt)
        result: ToolCallResult = await workflow.execute_activity(
            RECONCILE_CALL,
            ReconcileInput(context, call.call_id, call.effect, why, canceled, last),
            result_type=ToolCallResult,
            start_to_close_timeout=timedelta(seconds=30),
            heartbeat_timeout=timedelta(seconds=self._scope.limits.heartbeat),
            # A turn that is canceled meanwhile still needs to know how the call stands.
            cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        )
        self._scope.facts.confirm(context.facts)
        return result

    def _tell_unknown(
        self, call: ToolCallPlan, step: StepChanged, result: ToolCallResult, attempt: int
    ) -> str:
        self._scope.steps.change(
            step, "failed", outcome="outcome_unknown", detail=result.words, attempt=attempt
        )
        told = self._scope.new(
            "RecordToolOutcomeUnknown",
            call,
            step.step_id,
            "completed",
            "outcome_unknown",
            result.words,
        )
        return told.step_id
