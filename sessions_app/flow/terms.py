"""Words that the Flow's messages and facts share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

#: The built-in tool by which an agent gives a task to another one.
DELEGATE = "delegate"


@dataclass(frozen=True)
class Actor:
    """The authenticated person behind an RPC."""

    id: int
    name: str


@dataclass(frozen=True)
class UserMessage:
    message_id: str
    text: str
    author: Actor
    at: str = ""
    edited_by: Actor | None = None


@dataclass(frozen=True)
class Question:
    """One thing that an agent asks a person. Without ``choices`` it is answered in one's own words."""

    question: str
    choices: list[str] = field(default_factory=list)
    multiple: bool = False
    free_text: bool = False


@dataclass(frozen=True)
class EscalationStep:
    """Who is asked next when nobody answered, and for how many more seconds."""

    permission: str
    deadline: float


@dataclass(frozen=True)
class ApprovalPolicy:
    """Who is asked, how long, and what counts as an answer; kept as it was when it was asked.

    ``deadline``, ``reminders`` (before the deadline) and ``validity`` (0: without end) are seconds.
    """

    permission: str
    risk: str
    deadline: float
    at_deadline: Literal["reject", "approve", "escalate"]
    approve_n: int = 1
    deny_m: int = 1
    four_eyes: bool = False
    reason_on_approve: bool = False
    reason_on_reject: bool = True
    editable: bool = False
    validity: float = 0
    reminders: list[float] = field(default_factory=list)
    escalation: list[EscalationStep] = field(default_factory=list)
    version: int = 0
    #: What the tool came from (`Agent.source_of`): an approval is for that and nothing else.
    source: str = ""
