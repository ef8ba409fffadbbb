"""The bounds of one session, as it was started with them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Bounds of one session. Seconds, bytes and counts; 0 of a model call's is as for any Step."""

    model_calls_per_turn: int = 50
    parallel_calls: int = 16
    message_bytes: int = 64 * 1024
    queue_bytes: int = 1024 * 1024
    schedule_to_start: float = 600.0
    model_timeout: float = 600.0
    heartbeat: float = 10.0
    model_schedule_to_start: float = 600.0
    model_heartbeat: float = 0.0
    model_backoff: float = 0.0
    model_attempts: int = 3
    tool_attempts: int = 3
    backoff: float = 1.0
    continue_events: int = 10_000
    continue_bytes: int = 8 * 1024 * 1024
    continue_updates: int = 1_500
    delegation_depth: int = 3
    children_at_once: int = 8
    children: int = 50
    #: Updates of a run from which on only decisions, cancels and stops are taken; the engine ends at 2,000.
    last_updates: int = 1_900
    #: Entries and bytes of a run from which on a turn is ended; the engine ends at 51,200 and 50 MiB.
    last_events: int = 45_000
    last_bytes: int = 40 * 1024 * 1024
    #: Share of the model's window from which on older messages are summarised.
    context_threshold: float = 0.8
