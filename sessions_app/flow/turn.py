"""One turn: model calls, and between them the tool calls that each asks for."""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from sessions_app.flow import rules
    from sessions_app.flow.calls import Calls
    from sessions_app.flow.model_calls import ModelCalls
    from sessions_app.flow.scope import Scope
    from sessions_app.flow.timers import Timers


class Turn:
    """Runs one turn to its end, or until it is canceled."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._calls = Calls(scope)
        self._models = ModelCalls(scope)

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
            if self._scope.run_is_full():
                return "failed", rules.RUN_FULL, cause
            self._scope.set_phase("thinking")
            step = self._scope.steps.new("RunModel", self._scope.number, [cause])
            self._scope.take_steered(step)
            result = await self._scope.cancellable(self._models.run(step))
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
