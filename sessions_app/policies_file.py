"""The policy of a tool, as the agents' file writes it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sessions_app.agents_section import Section

PATTERN = re.compile(r"[A-Za-z0-9_*?-]{1,160}")
TIMES = ("schedule_to_start", "heartbeat", "attempts", "backoff")
TOOL = ("enabled", "effect", "approval", "timeout", *TIMES, "pool")
#: Where in the file each field of a policy stands, below its tool; the others are there themselves.
PLACES = {
    "permission": "approval.permission",
    "risk": "approval.risk",
    "deadline": "approval.deadline",
    "at_deadline": "approval.at_deadline",
    "approve_n": "approval.approve_n",
    "deny_m": "approval.deny_m",
    "four_eyes": "approval.four_eyes",
    "reason_on_approve": "approval.reason.approve",
    "reason_on_reject": "approval.reason.reject",
    "editable": "approval.editable",
    "validity": "approval.validity",
    "reminders": "approval.reminders",
    "escalation": "approval.escalation",
    **{name: name for name in (*TIMES, "pool")},
}
_APPROVAL = (
    "permission",
    "risk",
    "deadline",
    "at_deadline",
    "approve_n",
    "deny_m",
    "four_eyes",
    "reason",
    "editable",
    "validity",
    "reminders",
    "escalation",
)


@dataclass(frozen=True)
class ToolEntry:
    pattern: str
    values: dict[str, Any]
    path: str


def read_tool(part: Section, pattern: str, prefix: str = "") -> ToolEntry:
    """What is named without an approval runs without one; what is not named at all needs one.

    A pattern that lacks ``prefix`` gets it: a connection's own tools are written without its name.
    """
    if not PATTERN.fullmatch(pattern):
        part.error("", "a tool's name has letters, digits, _ and -, and * or ? in a pattern")
    asked = Section(part.values.get("approval", {}), part.at("approval"), part.errors, _APPROVAL)
    enabled = part.flag("enabled") is not False
    # What is never called needs no word on what it would do.
    effect = part.choice("effect", ("read", "idempotent", "write"), "" if enabled else "write")
    values = {
        "enabled": enabled,
        "effect": effect,
        "timeout": part.duration("timeout", timedelta(minutes=2)),
        "pool": part.text("pool"),
        **read_times(part),
        "needs_approval": "approval" in part.values,
        **_approval(asked),
    }
    name = pattern if pattern.startswith(prefix) else f"{prefix}{pattern}"
    return ToolEntry(name, values, part.path)


def read_times(part: Section, prefix: str = "") -> dict[str, Any]:
    """How long and how often, None where the file leaves it to the defaults."""
    return {
        f"{prefix}schedule_to_start": part.duration_or_none("schedule_to_start"),
        f"{prefix}heartbeat": part.duration_or_none("heartbeat"),
        f"{prefix}attempts": part.number_or_none("attempts"),
        f"{prefix}backoff": part.duration_or_none("backoff"),
    }


def _approval(asked: Section) -> dict[str, Any]:
    reason = asked.part("reason", ("approve", "reject"))
    return {
        "permission": asked.text("permission", "tools.approve"),
        "risk": asked.choice("risk", ("low", "medium", "high"), "medium"),
        "deadline": asked.duration("deadline", timedelta(hours=1)),
        "at_deadline": asked.choice("at_deadline", ("reject", "approve", "escalate"), "reject"),
        "approve_n": asked.number("approve_n", 1),
        "deny_m": asked.number("deny_m", 1),
        "four_eyes": bool(asked.flag("four_eyes")),
        "reason_on_approve": bool(reason.flag("approve")),
        "reason_on_reject": reason.flag("reject") is not False,
        "editable": asked.flag("editable") is not False,
        "validity": asked.duration_or_none("validity"),
        "reminders": asked.items("reminders"),
        "escalation": asked.items("escalation"),
    }
