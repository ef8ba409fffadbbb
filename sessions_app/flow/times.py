"""How long a Step may wait and take, and how often it is tried: what its tool or agent says, else the
session's limits.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from sessions_app.flow.state import Limits, ToolCallPlan


@dataclass(frozen=True)
class StepTimes:
    """`schedule_to_start`: for a slot to come free. `start_to_close`: for one attempt. `heartbeat`: for
    a sign of life of its worker. `backoff`: seconds before the second attempt, doubling from there.
    """

    schedule_to_start: timedelta
    start_to_close: timedelta
    heartbeat: timedelta
    attempts: int
    backoff: float


def of_model(limits: Limits) -> StepTimes:
    return StepTimes(
        timedelta(seconds=limits.model_schedule_to_start),
        timedelta(seconds=limits.model_timeout),
        timedelta(seconds=limits.model_heartbeat or limits.heartbeat),
        max(1, limits.model_attempts),
        limits.model_backoff or limits.backoff,
    )


def of_tool(call: ToolCallPlan, limits: Limits) -> StepTimes:
    """A write has one attempt, whatever anybody says."""
    attempts = 1 if call.effect == "write" else max(1, call.attempts or limits.tool_attempts)
    return StepTimes(
        timedelta(seconds=call.schedule_to_start or limits.schedule_to_start),
        timedelta(seconds=call.timeout),
        timedelta(seconds=call.heartbeat or limits.heartbeat),
        attempts,
        call.backoff or limits.backoff,
    )
