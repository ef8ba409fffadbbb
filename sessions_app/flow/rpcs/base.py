"""What every RPC shares: once per request id, under its locks, answered when it is recorded."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from sessions_app.flow import rules
    from sessions_app.flow.fact import PhaseChanged
    from sessions_app.flow.interrupts import Interrupts
    from sessions_app.flow.locks import Locks
    from sessions_app.flow.recorder import FactLog, StepLog
    from sessions_app.flow.spend import Spend
    from sessions_app.flow.state import RpcAnswer, SessionInput, Stop
    from sessions_app.flow.terms import Actor, UserMessage
    from sessions_app.flow.turn import Turn

CLOSES_AS = {"complete": "completed", "cancel": "canceled", "fail": "failed"}


class Rpc(Protocol):
    """The input of any RPC: who asks, and under which request id."""

    @property
    def request_id(self) -> str: ...

    @property
    def actor(self) -> Actor: ...


class SessionState:
    """The state that RPCs and the turn loop share.

    An RPC is a handler and its validator. The validator refuses without a trace in history; the
    handler starts in the same activation, before any other RPC's validator runs, so what was
    checked still holds.
    """

    def __init__(self, given: SessionInput) -> None:
        before = given.carried
        self._given = given
        self._facts = FactLog(
            given.session_id,
            before.facts if before else 0,
            enabled=given.record_facts,
            heartbeat=given.limits.heartbeat,
        )
        self._steps = StepLog(
            self._facts,
            before.step_numbers if before else {},
            before.position if before else 0,
        )
        self._interrupts = Interrupts(self._facts)
        self._locks = Locks()
        self._turn_number = before.turn if before else 0
        self._queue: list[UserMessage] = list(before.queue) if before else []
        self._steered: list[UserMessage] = list(before.steered) if before else []
        self._settings_revision = before.settings_revision if before else 0
        self._spend = Spend(self._facts, before.spend_raised if before else "0")
        self._ledger: dict[str, RpcAnswer] = dict(before.ledger) if before else {}
        first = given.first_message
        if before is None and first is not None:
            # Its message has this request's id: another one under it would be told of twice.
            self._ledger[first.message_id] = RpcAnswer(first.message_id, first.at, "queued")
        self._last_step = before.last_step if before else ""
        self._phase = ""
        self._turn: Turn | None = None
        self._cancel_reason = ""
        self._canceled_by: Actor | None = None
        self._stopping: Stop | None = before.stopping if before else None
        self._closed = False
        self._updates = 0

    def _is_new(self, rpc: Rpc, *keys: str) -> bool:
        """For validators: whether ``rpc`` is to be judged at all. Refuses while a lock of it is held."""
        if rpc.request_id in self._ledger:
            return False
        self._locks.check(*keys)
        return True

    def _check_room(self) -> None:
        """For validators of what decides nothing: a run takes so many RPCs, and decisions must fit."""
        if self._updates >= self._given.limits.last_updates:
            raise rules.refuse("run_nearly_full", taken=self._updates)

    async def _once(
        self, rpc: Rpc, act: Callable[[], Awaitable[tuple[str, str]]], *keys: str
    ) -> RpcAnswer:
        """Do ``act``, which returns (id, state), unless this request was answered before.

        The answer comes once the facts are recorded, so that the page that follows reads them.
        """
        if rpc.request_id in self._ledger:
            return self._ledger[rpc.request_id]
        with self._locks.taken(rpc.actor.name, *keys):
            id, state = await act()
            self._updates += 1
            answer = RpcAnswer(id, workflow.now().isoformat(), state)
            rules.remember(self._ledger, rpc.request_id, answer)
            await self._facts.flush()
            return answer

    def _check_open(self) -> None:
        if self._closed:
            assert self._stopping is not None
            raise rules.refuse("session_closed", session_status=CLOSES_AS[self._stopping.kind])

    def _check_taking_messages(self) -> None:
        if self._stopping is not None:
            raise rules.refuse("session_closed", session_status=CLOSES_AS[self._stopping.kind])

    def _set_phase(self, phase: str) -> None:
        if phase != self._phase:
            self._phase = phase
            self._facts.add(PhaseChanged("phase_changed", phase))
