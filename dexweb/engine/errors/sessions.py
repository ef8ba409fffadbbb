"""Refusals about sessions: their messages, settings, turns and spend."""

from __future__ import annotations

from dataclasses import dataclass

from dexweb.engine.errors.base import DexwebError


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
