"""Refusals of an RPC, and what each means over HTTP.

Errors are values: they carry what a person needs to see, and the same class serves page, API and log.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from dexweb.engine.errors.base import (
    DexwebError,
)
from dexweb.engine.errors.engine import (
    DatabaseBusy,
    EngineStateUnreadable,
    EngineUnavailable,
    KeyReused,
    NoWorker,
)
from dexweb.engine.errors.interrupts import (
    AlreadyVoted,
    DeadlineInPast,
    DeadlineNotLater,
    DeadlineTooFar,
    DecisionNotAllowed,
    FourEyes,
    InterruptAlreadyDecided,
    InterruptExpired,
    InterruptNotFound,
    InvalidArguments,
    NotEditable,
    ReasonRequired,
    RpcLockConflict,
    StaleInterrupt,
)
from dexweb.engine.errors.sessions import (
    AgentNotFound,
    BlankMessage,
    InvalidAmount,
    InvalidSettings,
    MessageNotFound,
    NotBlocked,
    NoTurn,
    NotWaiting,
    QuestionOpen,
    QueueFull,
    RunNearlyFull,
    SessionClosed,
    SessionNotFound,
    StaleSettings,
    TooLarge,
    WrongKind,
)

__all__ = [
    "BY_CODE",
    "AgentNotFound",
    "AlreadyVoted",
    "BlankMessage",
    "DatabaseBusy",
    "DeadlineInPast",
    "DeadlineNotLater",
    "DeadlineTooFar",
    "DecisionNotAllowed",
    "DexwebError",
    "EngineStateUnreadable",
    "EngineUnavailable",
    "FourEyes",
    "InterruptAlreadyDecided",
    "InterruptExpired",
    "InterruptNotFound",
    "InvalidAmount",
    "InvalidArguments",
    "InvalidSettings",
    "KeyReused",
    "MessageNotFound",
    "NoTurn",
    "NoWorker",
    "NotBlocked",
    "NotEditable",
    "NotWaiting",
    "QuestionOpen",
    "QueueFull",
    "ReasonRequired",
    "RpcLockConflict",
    "RunNearlyFull",
    "SessionClosed",
    "SessionNotFound",
    "StaleInterrupt",
    "StaleSettings",
    "TooLarge",
    "WrongKind",
    "from_details",
]


def _all(cls: type[DexwebError]) -> list[type[DexwebError]]:
    return [cls, *(error for child in cls.__subclasses__() for error in _all(child))]


BY_CODE: dict[str, type[DexwebError]] = {error.code: error for error in _all(DexwebError)}


def from_details(code: str, details: dict[str, Any]) -> DexwebError:
    """The error that `details` describe; fields that this version does not know are left out."""
    cls = BY_CODE[code]
    known = {field.name for field in fields(cls)}
    return cls(**{name: value for name, value in details.items() if name in known})
