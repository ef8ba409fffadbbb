"""Attribute locks: taken by an RPC before it acts, never waited for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from sessions_app.flow import rules


@dataclass(frozen=True)
class Lock:
    holder: str
    since: str


class Locks:
    """The locks that running RPCs hold. Not part of what is carried: no RPC outlives its run."""

    def __init__(self) -> None:
        self._held: dict[str, Lock] = {}

    def check(self, *keys: str) -> None:
        """Refuse when one of ``keys`` is held."""
        held = [key for key in keys if key in self._held]
        if held:
            lock = self._held[held[0]]
            raise rules.refuse(
                "rpc_lock_conflict",
                keys=held,
                holder=lock.holder,
                lock_kind="rpc",
                since=lock.since,
            )

    @contextmanager
    def taken(self, holder: str, *keys: str) -> Iterator[None]:
        self.check(*keys)
        lock = Lock(holder, workflow.now().isoformat())
        self._held.update(dict.fromkeys(keys, lock))
        try:
            yield
        finally:
            for key in keys:
                self._held.pop(key, None)
