"""Durable timers of a turn, which a person may skip."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from sessions_app.flow import rules
    from sessions_app.flow.fact import StepChanged, TimerFired, TimerSet
    from sessions_app.flow.recorder import FactLog
    from sessions_app.flow.state import ToolCallPlan
    from sessions_app.flow.terms import Actor


@dataclass
class Timer:
    """One wait until a moment of the engine's clock."""

    step_id: str
    call_id: str
    until: datetime
    since: datetime
    skipped_by: Actor | None = None


class Timers:
    """The open timers of a turn, by their Steps."""

    def __init__(self, facts: FactLog) -> None:
        self._facts = facts
        self._open: dict[str, Timer] = {}

    @property
    def open(self) -> int:
        return len(self._open)

    def set(self, call: ToolCallPlan, step: StepChanged) -> Timer:
        until = datetime.fromisoformat(call.until)
        timer = Timer(step.step_id, call.call_id, until, workflow.now())
        self._open[step.step_id] = timer
        self._facts.add(TimerSet("timer_set", step.step_id, call.call_id, until.isoformat()))
        return timer

    async def wait(self, timer: Timer) -> None:
        """Return once the moment has come, or a person skips the rest."""
        left = max(timer.until - workflow.now(), timedelta(0))
        try:
            await workflow.wait_condition(lambda: timer.skipped_by is not None, timeout=left)
        except TimeoutError:
            # Skipped in this very instant: the person was told so already.
            if timer.skipped_by is None:
                self._fired(timer)

    def skip(self, timer: Timer, by: Actor) -> None:
        timer.skipped_by = by
        self._fired(timer)

    def skip_all(self, by: Actor) -> None:
        for timer in list(self._open.values()):
            self.skip(timer, by)

    def drop(self, timer: Timer) -> None:
        """Its turn was canceled: nothing fires any more."""
        self._open.pop(timer.step_id, None)

    def check(self, step_id: str) -> Timer:
        """The open timer of this Step, or the refusal."""
        timer = self._open.get(step_id)
        if timer is None:
            raise rules.refuse("not_waiting", step_id=step_id)
        return timer

    def _fired(self, timer: Timer) -> None:
        self._open.pop(timer.step_id, None)
        self._facts.add(TimerFired("timer_fired", timer.step_id, timer.call_id, timer.skipped_by))
