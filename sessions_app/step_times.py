"""How long and how often, as agents and the policies of tools say it, in the Flow's terms."""

from dataclasses import replace
from datetime import timedelta
from typing import TypedDict

from sessions_app.flow.limits import Limits
from sessions_app.limits import installed
from sessions_app.models import Agent, ToolPolicy


class ToolTimes(TypedDict):
    timeout: float
    attempts: int
    backoff: float
    schedule_to_start: float
    heartbeat: float


def limits_for(agent: Agent) -> Limits:
    """The bounds of a session that starts now."""
    limits = installed()
    return replace(
        limits,
        model_timeout=_seconds(agent.model_timeout) or limits.model_timeout,
        model_attempts=agent.model_attempts or limits.model_attempts,
        model_backoff=_seconds(agent.model_backoff),
        model_schedule_to_start=(
            _seconds(agent.model_schedule_to_start) or limits.model_schedule_to_start
        ),
        model_heartbeat=_seconds(agent.model_heartbeat),
        model_calls_per_turn=agent.model_calls_per_turn or limits.model_calls_per_turn,
        parallel_calls=agent.parallel_calls or limits.parallel_calls,
    )


def tool_times(policy: ToolPolicy) -> ToolTimes:
    """What a call is planned with; 0 leaves it to the session's limits."""
    return {
        "timeout": policy.timeout.total_seconds(),
        "attempts": policy.attempts or 0,
        "backoff": _seconds(policy.backoff),
        "schedule_to_start": _seconds(policy.schedule_to_start),
        "heartbeat": _seconds(policy.heartbeat),
    }


def _seconds(duration: timedelta | None) -> float:
    return duration.total_seconds() if duration else 0.0
