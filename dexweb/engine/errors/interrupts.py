"""Refusals about waits for a person: locks, decisions and answers."""

from __future__ import annotations

from dataclasses import dataclass

from dexweb.engine.errors.base import DexwebError


@dataclass
class RpcLockConflict(DexwebError):
    """``lock_kind`` is rpc (short, retried for you) or hold (a person has it open); ``delivery`` says
    when a decision is kept until the lock is let go.
    """

    keys: list[str] | None = None
    holder: str = ""
    lock_kind: str = "rpc"
    since: str = ""
    until: str = ""
    delivery: str = ""
    code = "rpc_lock_conflict"
    status = 409
    title = "Somebody else is at it"

    @property
    def message(self) -> str:
        who = self.holder or "Another request"
        at_it = f"{who} is working on this right now."
        if self.kept:
            return f"{at_it} Your decision is kept and will be delivered once that is over."
        return f"{at_it} Nothing was changed; try again in a moment."


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
