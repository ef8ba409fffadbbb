"""Steps that call the model: their attempts, and the words of those that brought no result."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol, TypeVar

from temporalio import workflow
from temporalio.exceptions import ActivityError

with workflow.unsafe.imports_passed_through():
    from sessions_app.flow import rules, times
    from sessions_app.flow.fact import StepChanged
    from sessions_app.flow.queues import model_queue
    from sessions_app.flow.rules import Reach
    from sessions_app.flow.scope import ONE_ATTEMPT, Scope
    from sessions_app.flow.state import (
        COMPACT_CONTEXT,
        RUN_MODEL,
        CompactInput,
        CompactResult,
        RunModelInput,
        RunModelResult,
        SpendRefusal,
        StepContext,
    )


class Reply(Protocol):
    """What the result of any Step that calls the model says."""

    def __init__(
        self, *, error: str = ..., retryable: bool = ..., handed_back: bool = ...
    ) -> None: ...

    @property
    def error(self) -> str: ...

    @property
    def retryable(self) -> bool: ...

    @property
    def handed_back(self) -> bool: ...

    @property
    def spend_refused(self) -> SpendRefusal | None: ...


R = TypeVar("R", bound=Reply)
#: The activity's input, of who the Step is and whether this is its last attempt.
Given = Callable[[StepContext, bool], object]


class ModelCalls:
    """The model calls of a turn: what the agent says next, and summaries when it reads too much."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def run(self, step: StepChanged) -> RunModelResult:
        """Bring ``step``, a RunModel, to its end; the context is shortened first if it has to be."""
        result, attempt = await self._ask(step, self._scope.limits.context_threshold)
        if result.too_long:
            why_not = await self._compact(step)
            if self._scope.canceled:
                return result
            # A provider that found it too long finds so again.
            if not (why_not and result.error):
                result, attempt = await self._ask(step, compact_over=0.0)
        if result.error:
            self._end(step, result.error, attempt)
        return result

    async def _ask(self, step: StepChanged, compact_over: float) -> tuple[RunModelResult, int]:
        def given(context: StepContext, last: bool) -> RunModelInput:
            limits = self._scope.limits
            agent = self._scope.given.agent
            return RunModelInput(context, agent, last, compact_over, limits.parallel_calls)

        return await self._attempts(step, RUN_MODEL, given, RunModelResult)

    async def _compact(self, before: StepChanged) -> str:
        """Have older messages summarised ``before`` the model is asked; why not, if it failed.

        A failure ends no turn: the model may still take the context as it is.
        """
        scope = self._scope
        scope.set_phase("compacting")
        step = scope.steps.new("CompactContext", scope.number, scope.steps.causes_of(before))
        scope.steps.change(before, "scheduled", causes=[step.step_id])

        def given(context: StepContext, last: bool) -> CompactInput:
            return CompactInput(context, scope.given.agent, last)

        result, attempt = await self._attempts(step, COMPACT_CONTEXT, given, CompactResult)
        if result.error:
            self._end(step, result.error, attempt)
        scope.set_phase("thinking")
        return result.error

    def _end(self, step: StepChanged, error: str, attempt: int) -> None:
        status = "canceled" if self._scope.canceled else "failed"
        self._scope.steps.change(step, status, outcome=status, detail=error, attempt=attempt)

    async def _attempts(
        self, step: StepChanged, activity: str, given: Given, kind: type[R]
    ) -> tuple[R, int]:
        """(the result of the last attempt that was made, its number)."""
        terms = times.of_model(self._scope.limits)
        attempts = terms.attempts
        for attempt in range(1, rules.MOST_ATTEMPTS + 1):
            last = attempt >= attempts
            result = await self._admitted(step, activity, given, kind, attempt, last)
            attempts = min(attempts + result.handed_back, rules.MOST_ATTEMPTS)
            if (
                not result.error
                or not result.retryable
                or attempt >= attempts
                or self._scope.canceled
            ):
                break
            await self._scope.pause(step, attempt, result.error, terms.backoff)
        return result, attempt

    async def _admitted(
        self,
        step: StepChanged,
        activity: str,
        given: Given,
        kind: type[R],
        attempt: int,
        last: bool,
    ) -> R:
        """An attempt, made once the spend limit lets it; until then it waits, and asks again."""
        asked = 0
        result = await self._attempt(step, activity, given, kind, attempt, last)
        while result.spend_refused is not None:
            if self._scope.canceled:
                raise asyncio.CancelledError
            await self._await_spend(step, attempt, result.spend_refused, asked)
            asked += 1
            result = await self._attempt(step, activity, given, kind, attempt, last)
        return result

    async def _await_spend(
        self, step: StepChanged, attempt: int, refusal: SpendRefusal, asked: int
    ) -> None:
        """A wait that ends when the call may be asked about again; it is then what causes it."""
        steps, words = self._scope.steps, refusal.words
        cause = steps.causes_of(step)
        wait = steps.new("AwaitSpend", self._scope.number, cause, "waiting", detail=words)
        steps.change(step, "planned", attempt=attempt, causes=[wait.step_id])
        self._scope.set_phase("waiting_spend")
        try:
            await self._scope.spend.wait(wait.step_id, refusal, asked)
        except asyncio.CancelledError:
            steps.change(wait, "canceled", outcome="canceled")
            raise
        steps.change(wait, "completed", detail=words)
        steps.change(step, "scheduled", attempt=attempt)
        self._scope.set_phase("compacting" if step.type == "CompactContext" else "thinking")

    async def _attempt(
        self,
        step: StepChanged,
        activity: str,
        given: Given,
        kind: type[R],
        attempt: int,
        last: bool,
        patient: bool = False,
    ) -> R:
        """One that nobody took has cost nothing: people are told, and it waits on (``patient``)."""
        context, terms = self._scope.context(step, attempt), times.of_model(self._scope.limits)
        pool = self._scope.given.pool
        try:
            result: R = await workflow.execute_activity(
                activity,
                given(context, last),
                result_type=kind,
                task_queue=model_queue(pool),
                schedule_to_start_timeout=None if patient else terms.schedule_to_start,
                start_to_close_timeout=terms.start_to_close,
                heartbeat_timeout=terms.heartbeat,
                retry_policy=ONE_ATTEMPT,
                cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
                summary=step.step_id,
            )
        except ActivityError as error:
            reach = rules.reach_of(error)
            if reach == Reach.NEVER_TAKEN:
                words = rules.waits_for_model(pool, terms.schedule_to_start.total_seconds())
                self._scope.steps.change(step, "scheduled", detail=words, attempt=attempt)
                await self._scope.facts.flush()
                return await self._attempt(step, activity, given, kind, attempt, last, patient=True)
            return kind(
                error=f"The model call was cut off: {rules.cut_off_words(error)}.",
                retryable=reach != Reach.CANCELED,
                handed_back=reach == Reach.HANDED_BACK,
            )
        self._scope.facts.confirm(context.facts)
        return result
