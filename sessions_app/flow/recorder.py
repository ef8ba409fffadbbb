"""What the Flow has to tell, in order, until the outside has recorded it."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from sessions_app.flow.fact import Fact, FactBody, StepChanged
    from sessions_app.flow.state import RECORD_FACTS, RecordInput


class FactLog:
    """Numbers facts and keeps those that no Step has recorded yet.

    Every Step carries all that is unrecorded, and the projection takes each number once and in
    order; so whichever of parallel Steps comes first records them, and a lost one loses nothing.
    """

    def __init__(self, session_id: str, last: int, enabled: bool, heartbeat: float) -> None:
        self.session_id = session_id
        self.last = last
        self.recorded = last
        self._enabled = enabled
        self._heartbeat = heartbeat
        self._waiting: list[Fact] = []
        self._recording = False

    def add(self, body: FactBody) -> None:
        if not self._enabled:
            return
        self.last += 1
        self._waiting.append(Fact(self.last, workflow.now().isoformat(), body))

    def unrecorded(self) -> list[Fact]:
        """To ride along with a Step; tell `confirm` when that Step has come back."""
        return list(self._waiting)

    def confirm(self, facts: list[Fact]) -> None:
        if facts:
            self.recorded = max(self.recorded, facts[-1].n)
            self._waiting = [fact for fact in self._waiting if fact.n > self.recorded]

    async def flush(self) -> None:
        """Return once everything said so far is recorded; needed before a wait and before an answer."""
        target = self.last
        while self.recorded < target:
            if self._recording:
                await workflow.wait_condition(lambda: not self._recording)
                continue
            await self._record()

    async def _record(self) -> None:
        self._recording = True
        before, facts = _cancels(), self.unrecorded()
        try:
            await workflow.execute_activity(
                RECORD_FACTS,
                RecordInput(self.session_id, facts),
                start_to_close_timeout=timedelta(seconds=30),
                # Without it a session, and whoever waits for its answer, would stand still for all
                # of the 30 seconds when a worker dies just here.
                heartbeat_timeout=timedelta(seconds=self._heartbeat),
                retry_policy=RetryPolicy(
                    initial_interval=timedelta(milliseconds=200),
                    maximum_interval=timedelta(seconds=10),
                ),
            )
            self.confirm(facts)
        except ActivityError as error:
            if is_cancelled_exception(error):
                # For who waits here it is the cancel of their own wait, and is to be met as that.
                raise asyncio.CancelledError from error
            raise
        finally:
            self._recording = False
        if _cancels() > before:
            # An activity that completes in the moment of the cancel swallows it.
            raise asyncio.CancelledError


def _cancels() -> int:
    """How often whoever waits here was told to stop."""
    task = asyncio.current_task()
    return task.cancelling() if task else 0


class StepLog:
    """Names Steps ``<StepType>-<n>``, orders them, and tells of their appearing and changing."""

    def __init__(self, facts: FactLog, numbers: dict[str, int], position: int) -> None:
        self.numbers = dict(numbers)
        self.position = position
        self._facts = facts
        self._moved: dict[str, list[str]] = {}

    def new(
        self,
        type: str,
        turn: int,
        causes: list[str],
        status: str = "scheduled",
        call_id: str = "",
        tool: str = "",
        outcome: str = "",
        detail: str = "",
    ) -> StepChanged:
        """A Step appears. Returns the fact, which is also the handle for `change`."""
        self.numbers[type] = self.numbers.get(type, 0) + 1
        self.position += 1
        step = StepChanged(
            "step_changed",
            step_id=f"{type}-{self.numbers[type]}",
            type=type,
            turn=turn,
            position=self.position,
            status=status,
            causes=causes,
            call_id=call_id,
            tool=tool,
            outcome=outcome,
            detail=detail,
        )
        self._facts.add(step)
        return step

    def causes_of(self, step: StepChanged) -> list[str]:
        """As they were told last."""
        return self._moved.get(step.step_id, step.causes)

    def change(
        self,
        step: StepChanged,
        status: str,
        outcome: str = "",
        detail: str = "",
        attempt: int = 1,
        next_attempt_at: str = "",
        causes: list[str] | None = None,
    ) -> None:
        """``causes``, once given, are its causes from then on."""
        if causes is not None:
            self._moved[step.step_id] = causes
        self._facts.add(
            StepChanged(
                "step_changed",
                step_id=step.step_id,
                type=step.type,
                turn=step.turn,
                position=step.position,
                status=status,
                causes=self.causes_of(step),
                attempt=attempt,
                call_id=step.call_id,
                tool=step.tool,
                outcome=outcome,
                detail=detail,
                next_attempt_at=next_attempt_at,
            )
        )
