"""What the Flow tells the outside: numbered facts, told apart by their ``kind``.

Plain data only, since all of it crosses the engine as JSON. Times are ISO 8601 texts in UTC,
durations are seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from sessions_app.flow.limits import Limits
from sessions_app.flow.terms import Actor, ApprovalPolicy, Question, UserMessage


@dataclass(frozen=True)
class SessionStarted:
    kind: Literal["session_started"]
    agent: str
    title: str
    started_by: Actor
    labels: dict[str, str]
    run_id: str
    limits: Limits | None = None
    parent: str = ""


@dataclass(frozen=True)
class SessionContinued:
    kind: Literal["session_continued"]
    run_id: str
    previous_run: str


@dataclass(frozen=True)
class SessionClosed:
    kind: Literal["session_closed"]
    status: Literal["completed", "failed", "canceled", "terminated", "timed_out"]
    reason: str
    by: Actor | None


@dataclass(frozen=True)
class PhaseChanged:
    kind: Literal["phase_changed"]
    phase: str


@dataclass(frozen=True)
class MessageQueued:
    kind: Literal["message_queued"]
    message: UserMessage


@dataclass(frozen=True)
class MessageEdited:
    kind: Literal["message_edited"]
    message_id: str
    text: str
    by: Actor


@dataclass(frozen=True)
class MessageDeleted:
    kind: Literal["message_deleted"]
    message_id: str
    by: Actor


@dataclass(frozen=True)
class MessageSteered:
    """It is to be read before the next model call, and not only when its turn would come."""

    kind: Literal["message_steered"]
    message_id: str
    by: Actor


@dataclass(frozen=True)
class MessageTakenIn:
    """A steered message is read by a turn that runs already, from this Step on."""

    kind: Literal["message_taken_in"]
    message_id: str
    turn: int
    step_id: str


@dataclass(frozen=True)
class SettingsChanged:
    """`patch` is a JSON object; null takes a value back to the agent's."""

    kind: Literal["settings_changed"]
    revision: int
    patch: str
    by: Actor


@dataclass(frozen=True)
class TurnStarted:
    """A turn begins, with the message that it consumes."""

    kind: Literal["turn_started"]
    turn: int
    message_id: str


@dataclass(frozen=True)
class TurnEnded:
    """`state`: completed, failed or canceled; `reason` in words for the last two.

    `history_events` and `history_bytes` are how far the run has come.
    """

    kind: Literal["turn_ended"]
    turn: int
    state: Literal["completed", "failed", "canceled"]
    reason: str
    by: Actor | None
    history_events: int = 0
    history_bytes: int = 0


@dataclass(frozen=True)
class StepChanged:
    """A Step appears or changes. `position` orders Steps in a session; causes are set on appearing."""

    kind: Literal["step_changed"]
    step_id: str
    type: str
    turn: int
    position: int
    status: str
    causes: list[str] = field(default_factory=list)
    attempt: int = 1
    call_id: str = ""
    tool: str = ""
    outcome: str = ""
    detail: str = ""
    next_attempt_at: str = ""


@dataclass(frozen=True)
class ApprovalRequested:
    kind: Literal["approval_requested"]
    interrupt_id: str
    step_id: str
    call_id: str
    turn: int
    permission: str
    risk: str
    revision: int
    args_hash: str
    deadline: str
    at_deadline: str
    policy: ApprovalPolicy | None = None


@dataclass(frozen=True)
class QuestionAsked:
    kind: Literal["question_asked"]
    interrupt_id: str
    step_id: str
    call_id: str
    turn: int
    questions: list[Question]
    revision: int


@dataclass(frozen=True)
class QuestionAnswered:
    """`answers` are in the order of the questions, each what was chosen or written."""

    kind: Literal["question_answered"]
    interrupt_id: str
    answers: list[list[str]]
    by: Actor
    request_id: str


@dataclass(frozen=True)
class TimerSet:
    kind: Literal["timer_set"]
    step_id: str
    call_id: str
    until: str


@dataclass(frozen=True)
class TimerFired:
    """`skipped_by` is None when its moment came."""

    kind: Literal["timer_fired"]
    step_id: str
    call_id: str
    skipped_by: Actor | None


@dataclass(frozen=True)
class InterruptHeld:
    kind: Literal["interrupt_held"]
    interrupt_id: str
    by: Actor
    until: str
    taken_from: Actor | None


@dataclass(frozen=True)
class InterruptReleased:
    """`by` is None when the hold ran out."""

    kind: Literal["interrupt_released"]
    interrupt_id: str
    by: Actor | None


@dataclass(frozen=True)
class InterruptReminded:
    kind: Literal["interrupt_reminded"]
    interrupt_id: str
    seconds_left: float


@dataclass(frozen=True)
class InterruptEscalated:
    kind: Literal["interrupt_escalated"]
    interrupt_id: str
    permission: str
    deadline: str
    level: int


@dataclass(frozen=True)
class DeadlineExtended:
    kind: Literal["deadline_extended"]
    interrupt_id: str
    deadline: str
    by: Actor


@dataclass(frozen=True)
class VoteCast:
    """A person's word on one revision. With `args` they edited it: a new revision to be voted on."""

    kind: Literal["vote_cast"]
    interrupt_id: str
    revision: int
    verdict: Literal["approve", "reject"]
    by: Actor
    on_behalf_of: Actor | None
    reason: str
    request_id: str
    args: str = ""
    args_hash: str = ""


@dataclass(frozen=True)
class InterruptClosed:
    """A wait for a person ended. `by` is None unless a person decided."""

    kind: Literal["interrupt_closed"]
    interrupt_id: str
    state: Literal["approved", "rejected", "expired", "canceled", "superseded", "invalidated"]
    by: Actor | None
    reason: str
    request_id: str = ""


@dataclass(frozen=True)
class CallClosed:
    """A call ended without its tool's answer; `words` is what the model and people are told.

    `result` is set when people gave the call its answer.
    """

    kind: Literal["call_closed"]
    call_id: str
    step_id: str
    outcome: str
    words: str
    result: str = ""


@dataclass(frozen=True)
class SpendBlocked:
    """A budget stopped a model call. Amounts are decimal texts, in US dollars."""

    kind: Literal["spend_blocked"]
    step_id: str
    reason: str
    budget: str
    spent: str
    limit: str
    words: str


@dataclass(frozen=True)
class SpendRaised:
    """``total``: of all raises of the session."""

    kind: Literal["spend_raised"]
    amount: str
    total: str
    by: Actor


FactBody = Annotated[
    SessionStarted
    | SessionContinued
    | SessionClosed
    | PhaseChanged
    | MessageQueued
    | MessageEdited
    | MessageDeleted
    | MessageSteered
    | MessageTakenIn
    | SettingsChanged
    | TurnStarted
    | TurnEnded
    | StepChanged
    | ApprovalRequested
    | QuestionAsked
    | QuestionAnswered
    | TimerSet
    | TimerFired
    | InterruptHeld
    | InterruptReleased
    | InterruptReminded
    | InterruptEscalated
    | DeadlineExtended
    | VoteCast
    | InterruptClosed
    | CallClosed
    | SpendBlocked
    | SpendRaised,
    Field(discriminator="kind"),
]


@dataclass(frozen=True)
class Fact:
    """One thing that the Flow tells the outside, numbered from 1 in a session without gaps."""

    n: int
    at: str
    body: FactBody
