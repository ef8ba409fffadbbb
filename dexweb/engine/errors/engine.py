"""The engine, its workers, and requests that were made before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dexweb.engine.errors.base import DexwebError

#: A request that got no answer may have arrived: an engine keeps it for a worker that comes later.
UNCERTAIN = (
    "It is not certain whether this was done. Look at how it stands, and try again in a moment."
)


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
    """The engine gave no answer: unknown, ask again with the same id; `delivery` says what is kept."""

    delivery: str = ""
    code = "engine_unavailable"
    status = 503
    title = "The engine is away"
    retry_after = 5

    @property
    def message(self) -> str:
        return _away(self.kept, "The engine cannot be reached.")


@dataclass
class NoWorker(DexwebError):
    """The engine has the request but no worker takes it: unknown, ask again with the same id.

    ``why``: what a worker said that could not go on with the session; "" where none is there.
    """

    pool: str = ""
    delivery: str = ""
    why: str = ""
    code = "no_worker"
    status = 503
    title = "No worker answers"
    retry_after = 5

    @property
    def message(self) -> str:
        if self.why:
            told = f"{self.why.rstrip('.')}."
            return _away(self.kept, f"No worker can go on with this session: {told}")
        return _away(self.kept, f"No worker answers for the pool “{self.pool}”.")


@dataclass
class DatabaseBusy(DexwebError):
    """The database did not answer in time: unknown, ask again with the same id."""

    code = "database_busy"
    status = 503
    title = "The database is busy"
    retry_after = 1

    @property
    def message(self) -> str:
        return f"The database did not answer in time. {UNCERTAIN}"


@dataclass
class EngineStateUnreadable(EngineUnavailable):
    """A key is missing: for a person as good as an engine that is away, and as safe to try again."""

    code = "engine_state_unreadable"
    title = "What the engine stores cannot be read"
    retry_after = 60
    why: ClassVar[str] = (
        "A worker or web server lacks a key that what the engine stores was encrypted with: it is "
        "not in its DEXWEB_CREDENTIAL_KEYS (or the key file under its DEXWEB_VAR). Whoever runs "
        "Dexweb has to add that key on every worker and web server, and start them again."
    )

    @property
    def message(self) -> str:
        if self.kept:
            return f"{self.why} Your decision is kept and will be delivered after that."
        return (
            f"{self.why} It is not certain whether this was done: look at how it stands after that."
        )


def _away(kept: bool, what: str) -> str:
    if kept:
        return f"{what} Your decision is kept and will be delivered as soon as it is back."
    return f"{what} {UNCERTAIN}"
