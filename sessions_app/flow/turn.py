"""One turn: model calls, and between them the tool calls that each asks for."""

from __future__ import annotations

import asyncio

from temporalio import workflow
from temporalio.exceptions import ActivityError

with workflow.unsafe.imports_passed_through():
    from sessions_app.flow import rules, times
    from sessions_app.flow.calls import Calls
    from sessions_app.flow.fact import StepChanged
    from sessions_app.flow.queues import model_queue
    from sessions_app.flow.rules import Reach
    from sessions_app.flow.scope import ONE_ATTEMPT, Scope
    from sessions_app.flow.state import RUN_MODEL, RunModelInput, RunModelResult, SpendRefusal
    from sessions_app.flow.timers import Timers


class Turn:
    """Runs one turn to its end, or until it is canceled."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._calls = Calls(scope)

    @property
    def number(self) -> int:
        return self._scope.number

    @property
    def canceled(self) -> bool:
        return self._scope.canceled

    @property
    def timers(self) -> Timers:
        return self._scope.timers

    def cancel(self) -> None:
        self._scope.cancel()

    async def run(self, cause: str) -> tuple[str, str, str]:
        """Returns (state, reason, id of the last Step): state is completed, failed or canceled."""
        for _ in range(self._scope.limits.model_calls_per_turn):
            self._scope.set_phase("thinking")
            step = self._scope.steps.new("RunModel", self._scope.number, [cause])
            self._scope.take_steered(step)
            result = await self._scope.cancellable(self._run_model(step))
            cause = step.step_id
            if result is None:
                self._scope.steps.change(step, "canceled", outcome="canceled")
            if result is None or self._scope.canceled:
                return "canceled", "", cause
            if result.error:
                return "failed", result.error, cause
            if not result.calls and self._scope.steered:
                # Steered in while the last answer was written: this turn answers that too.
                continue
            if not result.calls:
                return "completed", "", cause
            cause = await self._calls.run(step, result.calls)
            if self._scope.canceled:
                return "canceled", "", cause
        limit = self._scope.limits.model_calls_per_turn
        return "failed", f"The turn reached its limit of {limit} model calls.", cause

    async def _run_model(self, step: StepChanged) -> RunModelResult:
        terms = times.of_model(self._scope.limits)
        attempts = terms.attempts
        for attempt in range(1, rules.MOST_ATTEMPTS + 1):
            result = await self._admitted(step, attempt, last=attempt >= attempts)
            attempts = min(attempts + result.handed_back, rules.MOST_ATTEMPTS)
            if (
                not result.error
                or not result.retryable
                or attempt >= attempts
                or self._scope.canceled
            ):
                break
            await self._scope.pause(step, attempt, result.error, terms.backoff)
        if result.error:
            status = "canceled" if self._scope.canceled else "failed"
            self._scope.steps.change(
                step, status, outcome=status, detail=result.error, attempt=attempt
            )
        return result

    async def _admitted(self, step: StepChanged, attempt: int, last: bool) -> RunModelResult:
        """An attempt, made once the spend limit lets it; until then it waits, and asks again."""
        cause, asked = step.causes, 0
        result = await self._attempt_model(step, attempt, last)
        while result.spend_refused is not None:
            wait = await self._await_spend(step, attempt, cause, result.spend_refused, asked)
            cause, asked = [wait.step_id], asked + 1
            result = await self._attempt_model(step, attempt, last)
        return result

    async def _await_spend(
        self,
        step: StepChanged,
        attempt: int,
        cause: list[str],
        refusal: SpendRefusal,
        asked: int,
    ) -> StepChanged:
        """A wait that ends when the call may be asked about again; it is then what causes it."""
        steps, words = self._scope.steps, refusal.words
        wait = steps.new("AwaitSpend", self.number, cause, "waiting", detail=words)
        steps.change(step, "planned", attempt=attempt, causes=[wait.step_id])
        self._scope.set_phase("waiting_spend")
        try:
            await self._scope.spend.wait(wait.step_id, refusal, asked)
        except asyncio.CancelledError:
            steps.change(wait, "canceled", outcome="canceled")
            raise
        steps.change(wait, "completed", detail=words)
        steps.change(step, "scheduled", attempt=attempt, causes=[wait.step_id])
        self._scope.set_phase("thinking")
        return wait

    async def _attempt_model(
        self, step: StepChanged, attempt: int, last: bool, patient: bool = False
    ) -> RunModelResult:
        """One that nobody took has cost nothing: people are told, and it waits on (``patient``)."""
        context, terms = self._scope.context(step, attempt), times.of_model(self._scope.limits)
        pool = self._scope.given.pool
        try:
            result: RunModelResult = await workflow.execute_activity(
                RUN_MODEL,
                RunModelInput(context, self._scope.given.agent, last),
                result_type=RunModelResult,
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
                return await self._attempt_model(step, attempt, last, patient=True)
            return RunModelResult(
                error=f"The model call was cut off: {rules.cut_off_words(error)}.",
                retryable=reach != Reach.CANCELED,
                handed_back=reach == Reach.HANDED_BACK,
            )
        self._scope.facts.confirm(context.facts)
        return result
