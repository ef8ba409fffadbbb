"""What the Flow holds and exchanges: its input, RPCs, Steps and facts, as frozen dataclasses.

Plain data only, since all of it crosses the engine as JSON. Times are ISO 8601 texts in UTC,
durations are seconds. A union is told apart by its ``kind``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from sessions_app.flow.fact import Fact
from sessions_app.flow.limits import Limits as Limits
from sessions_app.flow.terms import Actor, ApprovalPolicy, Question, UserMessage


@dataclass(frozen=True)
class SessionInput:
    """What a session starts with; `carried` is set when a run goes on from an earlier one.

    `settings` is a JSON object: what this session changes of its agent's settings from the start.
    `parent` is the session that delegated to this one; such a one ends with its answer.
    """

    session_id: str
    agent: str
    title: str
    pool: str
    started_by: Actor
    first_message: UserMessage | None = None
    labels: dict[str, str] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    record_facts: bool = True
    carried: CarriedState | None = None
    settings: str = ""
    parent: str = ""


@dataclass(frozen=True)
class CarriedState:
    """The state that goes over continue-as-new."""

    turn: int
    facts: int
    step_numbers: dict[str, int]
    position: int
    queue: list[UserMessage]
    ledger: dict[str, RpcAnswer]
    last_step: str
    previous_run: str
    steered: list[UserMessage] = field(default_factory=list)
    settings_revision: int = 0
    spend_raised: str = "0"
    stopping: Stop | None = None


# RPCs -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SendMessage:
    request_id: str
    text: str
    actor: Actor


@dataclass(frozen=True)
class EditQueued:
    request_id: str
    message_id: str
    text: str
    actor: Actor


@dataclass(frozen=True)
class DeleteQueued:
    request_id: str
    message_id: str
    actor: Actor


@dataclass(frozen=True)
class Steer:
    """Take a queued message in before the next model call of the turn that runs."""

    request_id: str
    message_id: str
    actor: Actor


@dataclass(frozen=True)
class UpdateSettings:
    """`patch` is a JSON object; it counts from the next turn. `revision` is the one it was made on."""

    request_id: str
    patch: str
    revision: int
    actor: Actor


@dataclass(frozen=True)
class ResolveInterrupt:
    request_id: str
    interrupt_id: str
    revision: int
    args_hash: str
    verdict: Literal["approve", "reject"]
    actor: Actor
    reason: str = ""
    on_behalf_of: Actor | None = None
    edited_args: str = ""
    edited_hash: str = ""


@dataclass(frozen=True)
class AnswerQuestion:
    """Answer all questions of an interrupt at once, in their order."""

    request_id: str
    interrupt_id: str
    revision: int
    answers: list[list[str]]
    actor: Actor


@dataclass(frozen=True)
class SkipWait:
    """Go on now instead of when the timer of this Step fires."""

    request_id: str
    step_id: str
    actor: Actor


@dataclass(frozen=True)
class HoldInterrupt:
    """Keep an interrupt to oneself for some seconds; with `take_over`, from whoever holds it."""

    request_id: str
    interrupt_id: str
    actor: Actor
    seconds: float
    take_over: bool = False


@dataclass(frozen=True)
class ReleaseInterrupt:
    request_id: str
    interrupt_id: str
    actor: Actor


@dataclass(frozen=True)
class ExtendDeadline:
    request_id: str
    interrupt_id: str
    until: str
    actor: Actor


@dataclass(frozen=True)
class CancelTurn:
    request_id: str
    actor: Actor
    reason: str = ""


@dataclass(frozen=True)
class RaiseSpend:
    """Let a blocked session spend `amount` (a decimal text, US dollars) over its budgets."""

    request_id: str
    amount: str
    actor: Actor


@dataclass(frozen=True)
class Stop:
    """`kind`: complete once all that is queued is done, cancel now, fail now. (Terminate needs no Flow.)"""

    request_id: str
    kind: Literal["complete", "cancel", "fail"]
    actor: Actor
    reason: str = ""


@dataclass(frozen=True)
class RpcAnswer:
    """What an accepted RPC answers: the id of what it made or changed, and when."""

    id: str
    at: str
    state: str = ""


# Steps ------------------------------------------------------------------------------------------

#: The patch by which a run asks for a mark in each workflow task that would leave nothing.
MARKS = "tasks-leave-marks"
#: The Flow's name in the engine.
SESSION = "Session"
RUN_MODEL = "run_model"
COMPACT_CONTEXT = "compact_context"
CALL_TOOL = "call_tool"
RECONCILE_CALL = "reconcile_call"
RECORD_FACTS = "record_facts"
BEGIN_DELEGATION = "begin_delegation"
END_DELEGATION = "end_delegation"


@dataclass(frozen=True)
class ToolCallPlan:
    """A call as the model asked for it, judged by the tool's policy. Its arguments stay in its row.

    `pool` "" is the session's own; a time or a number of 0 is as the session's limits say.
    `questions` or `until` (a moment) are set for a built-in tool that waits in the Flow itself.
    """

    call_id: str
    tool: str
    effect: Literal["read", "idempotent", "write"]
    args_hash: str
    timeout: float
    approval: ApprovalPolicy | None = None
    error: str = ""
    pool: str = ""
    attempts: int = 0
    backoff: float = 0
    schedule_to_start: float = 0
    heartbeat: float = 0
    questions: list[Question] = field(default_factory=list)
    until: str = ""


@dataclass(frozen=True)
class StepContext:
    """What every Step gets: who it is, and the facts that are to be recorded before it acts."""

    session_id: str
    step_id: str
    attempt: int
    turn: int
    facts: list[Fact] = field(default_factory=list)
    history_events: int = 0
    history_bytes: int = 0


@dataclass(frozen=True)
class RunModelInput:
    """`compact_over`: the share of the model's window from which on the Step asks for a shorter
    context instead of calling the model; 0 when it has to take the context as it is.
    """

    step: StepContext
    agent: str
    last_attempt: bool
    compact_over: float = 0.0
    parallel_calls: int = 16


@dataclass(frozen=True)
class SpendRefusal:
    """A budget stopped the call: nothing was called. Amounts are decimal texts; `until` may be ""."""

    reason: str
    words: str
    budget: str
    spent: str
    limit: str
    until: str = ""


@dataclass(frozen=True)
class RunModelResult:
    """`error` set: the call failed; `retryable` says whether another attempt could help.

    `spend_refused` set: it was not made.

    `handed_back`: its worker was stopped, which uses up no attempt. `too_long`: the context is to be
    compacted first; with an `error` when the provider said so, without one when it was not asked.
    """

    calls: list[ToolCallPlan] = field(default_factory=list)
    said_text: bool = False
    error: str = ""
    retryable: bool = False
    handed_back: bool = False
    spend_refused: SpendRefusal | None = None
    too_long: bool = False


@dataclass(frozen=True)
class CompactInput:
    """Summarise older messages of the session for the model."""

    step: StepContext
    agent: str
    last_attempt: bool


@dataclass(frozen=True)
class CompactResult:
    """As of a model call; without an `error` the summary is kept."""

    error: str = ""
    retryable: bool = False
    handed_back: bool = False
    spend_refused: SpendRefusal | None = None


@dataclass(frozen=True)
class Approval:
    """The decision that a gated call runs under."""

    interrupt_id: str
    actor: Actor | None
    decided_at: str
    permission: str
    approvers: list[Actor] = field(default_factory=list)
    validity: float = 0


@dataclass(frozen=True)
class CallToolInput:
    step: StepContext
    agent: str
    call: ToolCallPlan
    approval: Approval | None
    last_attempt: bool


@dataclass(frozen=True)
class ToolCallResult:
    """How one attempt ended. `ran` is False when it is certain that the tool was never reached.

    `ask_again`: what it was to run under no longer holds, so a person is asked anew, by this policy.
    `handed_back`: its worker was stopped, which uses up no attempt.
    """

    outcome: str
    words: str = ""
    ran: bool = True
    retryable: bool = False
    ask_again: ApprovalPolicy | None = None
    handed_back: bool = False


@dataclass(frozen=True)
class ReconcileInput:
    """Ask the rows how far a cut-off attempt came."""

    step: StepContext
    call_id: str
    effect: str
    cut_off: str
    canceled: bool
    last_attempt: bool


@dataclass(frozen=True)
class DelegationBegun:
    """The child session to start; or None, and `result` says how the call ended instead."""

    child: SessionInput | None
    result: ToolCallResult | None = None


@dataclass(frozen=True)
class EndDelegationInput:
    """How the child's Flow ended, as the engine says it; "" when it may never have started."""

    step: StepContext
    call_id: str
    ended: str


@dataclass(frozen=True)
class RecordInput:
    session_id: str
    facts: list[Fact]
