"""Refusals of an RPC, and a table of what each means over HTTP.

Errors are values: they carry what a person needs to see, and the same class serves page, API and log.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar


@dataclass
class DexwebError(Exception):
    """Something that was asked for and refused. ``code`` is stable; `message` is for people."""

    code: ClassVar[str] = "error"
    status: ClassVar[int] = 400
    title: ClassVar[str] = "That cannot be done"
    retry_after: ClassVar[int | None] = None

    def __str__(self) -> str:
        return self.message

    @property
    def message(self) -> str:
        return self.title

    def details(self) -> dict[str, Any]:
        """The fields by name, JSON-ready."""
        return asdict(self)


@dataclass
class BlankMessage(DexwebError):
    code = "blank_message"
    title = "The message is empty"

    @property
    def message(self) -> str:
        return "Write something for the agent first."


@dataclass
class TooLarge(DexwebError):
    size: int = 0
    limit: int = 0
    code = "too_large"
    status = 413
    title = "Too large"

    @property
    def message(self) -> str:
        return f"This is {self.size:,} bytes; the limit is {self.limit:,}. Shorten it and send it again."


@dataclass
class QueueFull(DexwebError):
    waiting: int = 0
    code = "queue_full"
    status = 409
    title = "Too much is waiting already"

    @property
    def message(self) -> str:
        return (
            f"{self.waiting} messages wait for the agent, and more would be too much to keep. "
            "Send this one once it has taken some."
        )


@dataclass
class RunNearlyFull(DexwebError):
    """One turn has taken so many requests that the rest of its room is kept for decisions."""

    taken: int = 0
    code = "run_nearly_full"
    status = 409
    title = "This turn has taken very many requests"

    @property
    def message(self) -> str:
        return (
            f"It has taken {self.taken:,} requests, and takes only decisions from now on. "
            "Decide what is open, or cancel the turn; once a turn has ended, all is taken again."
        )


@dataclass
class MessageNotFound(DexwebError):
    """The agent has taken it already, or somebody has withdrawn it."""

    message_id: str = ""
    code = "message_not_found"
    status = 404
    title = "This message waits no more"

    @property
    def message(self) -> str:
        return (
            "The agent has taken this message already, or it was withdrawn. Nothing was changed; "
            "send another one."
        )


@dataclass
class StaleSettings(DexwebError):
    revision: int = 0
    code = "stale_settings"
    status = 409
    title = "Somebody changed the settings meanwhile"

    @property
    def message(self) -> str:
        return (
            f"The settings are at revision {self.revision} by now. Nothing was changed; read them "
            "again and send yours with that revision."
        )


@dataclass
class InvalidSettings(DexwebError):
    errors: list[str] | None = None
    code = "invalid_settings"
    title = "These settings cannot be used"

    @property
    def message(self) -> str:
        return " ".join(self.errors or []) or self.title


@dataclass
class AgentNotFound(DexwebError):
    agent: str = ""
    code = "agent_not_found"
    title = "No such agent"

    @property
    def message(self) -> str:
        return f"There is no enabled agent called “{self.agent}”."


@dataclass
class SessionClosed(DexwebError):
    session_status: str = ""
    code = "session_closed"
    status = 409
    title = "This session has ended"

    @property
    def message(self) -> str:
        return (
            f"This session has ended ({self.session_status or 'closed'}). Start a new one to go on."
        )


@dataclass
class SessionNotFound(DexwebError):
    session_id: str = ""
    code = "session_not_found"
    status = 404
    title = "No such session"

    @property
    def message(self) -> str:
        return "The engine knows no session with this id."


@dataclass
class NoTurn(DexwebError):
    code = "no_turn"
    status = 409
    title = "No turn is running"

    @property
    def message(self) -> str:
        return "No turn is running, so there is nothing to cancel."


@dataclass
class QuestionOpen(DexwebError):
    interrupt_id: str = ""
    code = "question_open"
    status = 409
    title = "The agent waits for an answer"

    @property
    def message(self) -> str:
        return (
            "The agent has asked a question. Answer it, or cancel the turn, and then write to it."
        )


@dataclass
class NotWaiting(DexwebError):
    step_id: str = ""
    code = "not_waiting"
    status = 409
    title = "The wait is over"

    @property
    def message(self) -> str:
        return "This timer waits no more, so there is nothing to skip."


@dataclass
class WrongKind(DexwebError):
    """``kind`` is what it is: an approval or a question."""

    interrupt_id: str = ""
    kind: str = ""
    code = "wrong_kind"
    status = 409
    title = "That is not how this is answered"

    @property
    def message(self) -> str:
        if self.kind == "question":
            return "The agent asks a question here: answer it instead of deciding on it."
        return "The agent asks for an approval here: approve or reject it."


@dataclass
class NotBlocked(DexwebError):
    code = "not_blocked"
    status = 409
    title = "No budget blocks this session"

    @property
    def message(self) -> str:
        return "No budget blocks this session now, so there is nothing to raise."


@dataclass
class InvalidAmount(DexwebError):
    code = "invalid_amount"
    status = 400
    title = "This is no amount to raise by"

    @property
    def message(self) -> str:
        return (
            "Give an amount from 0 to 1,000,000 US dollars, with at most six decimals, like 2.50."
        )


@dataclass
class RpcLockConflict(DexwebError):
    """``lock_kind`` is rpc (short, retried for you) or hold (a person has it open)."""

    keys: list[str] | None = None
    holder: str = ""
    lock_kind: str = "rpc"
    since: str = ""
    until: str = ""
    code = "rpc_lock_conflict"
    status = 409
    title = "Somebody else is at it"

    @property
    def message(self) -> str:
        who = self.holder or "Another request"
        return f"{who} is working on this right now. Nothing was changed; try again in a moment."


@dataclass
class InterruptNotFound(DexwebError):
    interrupt_id: str = ""
    code = "interrupt_not_found"
    status = 404
    title = "No such approval"

    @property
    def message(self) -> str:
        return "This session has no such approval."


@dataclass
class InterruptAlreadyDecided(DexwebError):
    """``state`` is what it became; ``by`` and ``at`` who and when ("" by nobody: a deadline, a cancel)."""

    interrupt_id: str = ""
    state: str = ""
    by: str = ""
    at: str = ""
    reason: str = ""
    code = "interrupt_already_decided"
    status = 409
    title = "Already decided"

    @property
    def message(self) -> str:
        who = f" by {self.by}" if self.by else ""
        return f"This was already {self.state}{who}. Your decision was not used."


@dataclass
class InterruptExpired(DexwebError):
    interrupt_id: str = ""
    deadline: str = ""
    at_deadline: str = "reject"
    code = "interrupt_expired"
    status = 409
    title = "Too late: the deadline has passed"

    @property
    def message(self) -> str:
        return "The deadline passed before your decision arrived, so it was not used."


@dataclass
class StaleInterrupt(DexwebError):
    interrupt_id: str = ""
    revision: int = 0
    args_hash: str = ""
    code = "stale_interrupt"
    status = 409
    title = "What will run has changed"

    @property
    def message(self) -> str:
        return "The arguments are not the ones you were shown. Read them again before you decide."


@dataclass
class AlreadyVoted(DexwebError):
    """``by`` is set when another did, for the same person or as the one who is stood in for."""

    interrupt_id: str = ""
    verdict: str = ""
    by: str = ""
    code = "already_voted"
    status = 409
    title = "You have voted on this"

    @property
    def message(self) -> str:
        if self.by:
            return (
                f"{self.by} has voted to {self.verdict}, and you would decide with the same "
                "person's permission; a person counts once."
            )
        return f"Your vote to {self.verdict} counts already; a person counts once."


@dataclass
class DeadlineInPast(DexwebError):
    until: str = ""
    code = "deadline_in_past"
    title = "That moment has passed"

    @property
    def message(self) -> str:
        return "A deadline can only be moved to a moment that is still to come."


@dataclass
class DeadlineNotLater(DexwebError):
    """``deadline`` is the one that stands."""

    until: str = ""
    deadline: str = ""
    code = "deadline_not_later"
    title = "That is earlier than the deadline"

    @property
    def message(self) -> str:
        return (
            "Others count on the time that is left, so a deadline only moves later. "
            "To end it now, approve or reject it."
        )


@dataclass
class DeadlineTooFar(DexwebError):
    """``latest`` is the last moment that would be taken."""

    until: str = ""
    latest: str = ""
    code = "deadline_too_far"
    title = "That is too far away"

    @property
    def message(self) -> str:
        return (
            f"A deadline can be moved to {self.latest[:10] or 'thirty days from now'} at the latest. "
            "Choose an earlier moment; it can be moved again later."
        )


@dataclass
class FourEyes(DexwebError):
    """``because`` says what ties the person to the request."""

    because: str = ""
    code = "four_eyes"
    status = 403
    title = "Somebody else must decide this"

    @property
    def message(self) -> str:
        return f"Its policy asks for a second pair of eyes, and {self.because}."


@dataclass
class NotEditable(DexwebError):
    code = "not_editable"
    status = 403
    title = "These arguments cannot be edited"

    @property
    def message(self) -> str:
        return (
            "The tool's policy does not allow edited arguments: approve them as they are or reject."
        )


@dataclass
class InvalidArguments(DexwebError):
    errors: list[str] | None = None
    code = "invalid_arguments"
    status = 422
    title = "The arguments do not fit the tool"

    @property
    def message(self) -> str:
        return "; ".join(self.errors or []) or self.title


@dataclass
class DecisionNotAllowed(DexwebError):
    permission: str = ""
    code = "not_allowed"
    status = 403
    title = "You may not decide this"

    @property
    def message(self) -> str:
        return f"Deciding this needs the permission {self.permission}, which you do not hold."


@dataclass
class ReasonRequired(DexwebError):
    code = "reason_required"
    status = 400
    title = "A reason is needed"

    @property
    def message(self) -> str:
        return "Say why, so that the agent and your colleagues know what to do next."


@dataclass
class KeyReused(DexwebError):
    code = "idempotency_key_reused"
    status = 409
    title = "This key was used for another request"

    @property
    def message(self) -> str:
        return "The same Idempotency-Key came with a different body. Use a new key."


@dataclass
class EngineUnavailable(DexwebError):
    """The engine cannot be reached: nothing was changed unless `delivery` says that it is kept."""

    delivery: str = ""
    code = "engine_unavailable"
    status = 503
    title = "The engine is away"
    retry_after = 5

    @property
    def message(self) -> str:
        return _away(self.delivery, "The engine cannot be reached.")


@dataclass
class NoWorker(DexwebError):
    """The engine has the request but no worker serves the pool: unknown, ask again with the same id."""

    pool: str = ""
    delivery: str = ""
    code = "no_worker"
    status = 503
    title = "No worker is running"
    retry_after = 5

    @property
    def message(self) -> str:
        return _away(self.delivery, f"No worker answers for the pool “{self.pool}”.")


@dataclass
class DatabaseBusy(DexwebError):
    """The database did not answer in time: unknown, ask again with the same id."""

    code = "database_busy"
    status = 503
    title = "The database is busy"
    retry_after = 1

    @property
    def message(self) -> str:
        return (
            "The database did not answer in time, so it is not certain whether this was done. "
            "Look at how it stands, and try again in a moment."
        )


@dataclass
class EngineStateUnreadable(EngineUnavailable):
    """A key is missing: for a person as good as an engine that is away, and as safe to try again."""

    code = "engine_state_unreadable"
    title = "What the engine stores cannot be read"

    @property
    def message(self) -> str:
        return _away(
            self.delivery,
            "What the engine stores was encrypted with a key that is not among "
            "DEXWEB_CREDENTIAL_KEYS (or in the key file under DEXWEB_VAR). Whoever runs Dexweb has "
            "to add that key on every worker and web server, and start them again.",
        )


def _away(delivery: str, what: str) -> str:
    if delivery == "delivery_pending":
        return f"{what} Your decision is kept and will be delivered as soon as it is back."
    return f"{what} Nothing was changed; try again in a moment."


def _all(cls: type[DexwebError]) -> list[type[DexwebError]]:
    return [cls, *(error for child in cls.__subclasses__() for error in _all(child))]


BY_CODE: dict[str, type[DexwebError]] = {error.code: error for error in _all(DexwebError)}


def from_details(code: str, details: dict[str, Any]) -> DexwebError:
    """The error that `details` describe; fields that this version does not know are left out."""
    cls = BY_CODE[code]
    known = {field.name for field in fields(cls)}
    return cls(**{name: value for name, value in details.items() if name in known})
