"""The session Flow: one durable conversation. Deterministic; the engine replays it at will.

What happened is in this class; rows are its projection. It does no I/O, reads no clock but the
engine's, and uses neither local activities nor queries (both broke replay beside updates).
"""

from __future__ import annotations

import asyncio
from typing import Literal

from temporalio import workflow
from temporalio.exceptions import ApplicationError

with workflow.unsafe.imports_passed_through():
    from sessions_app.flow import rules
    from sessions_app.flow.fact import (
        MessageQueued,
        SessionClosed,
        SessionContinued,
        SessionStarted,
        TurnEnded,
        TurnStarted,
    )
    from sessions_app.flow.rpcs.base import CLOSES_AS
    from sessions_app.flow.rpcs.ending import EndingRpcs
    from sessions_app.flow.rpcs.interrupts import InterruptRpcs
    from sessions_app.flow.rpcs.queue import QueueRpcs
    from sessions_app.flow.rpcs.settings import SettingsRpcs
    from sessions_app.flow.rpcs.spend import SpendRpcs
    from sessions_app.flow.rpcs.waits import WaitRpcs
    from sessions_app.flow.scope import Scope
    from sessions_app.flow.state import MARKS, SESSION, CarriedState, SessionInput, Stop
    from sessions_app.flow.terms import Actor
    from sessions_app.flow.turn import Turn


#: How a child ends by how its last turn did.
STOPS_AS: dict[str, Literal["complete", "cancel", "fail"]] = {
    "completed": "complete",
    "canceled": "cancel",
    "failed": "fail",
}
NOBODY = Actor(0, "")


@workflow.defn(name=SESSION)
class SessionFlow(QueueRpcs, InterruptRpcs, WaitRpcs, EndingRpcs, SettingsRpcs, SpendRpcs):
    @workflow.init
    def __init__(self, given: SessionInput) -> None:
        super().__init__(given)
        if given.carried is None and given.first_message is not None:
            self._queue.append(given.first_message)
        # Here and not in run: an RPC that comes with the start is handled before run begins.
        self._tell_start()

    @workflow.run
    async def run(self, given: SessionInput) -> str:
        """Returns the status that the session closed with."""
        # Its worker leaves them (dexweb/engine/marks.py), but not for a run that began without.
        workflow.patched(MARKS)
        try:
            await (self._until_called_off() if given.parent else self._loop())
        except asyncio.CancelledError:
            # The engine itself was asked to cancel, past our own RPC.
            self._stopping = Stop("", "cancel", Actor(0, ""), "Canceled in the engine.")
        return await self._close()

    # The loop ---------------------------------------------------------------------------------

    async def _loop(self) -> None:
        while await self._next_message():
            state, reason, by = await self._run_turn()
            if self._given.parent and not self._has_message():
                # What people told it meanwhile it has done too; now its last answer is its result.
                self._stopping = self._stopping or Stop("", STOPS_AS[state], by or NOBODY, reason)
                return
            if self._should_continue():
                await self._continue_as_new()

    async def _until_called_off(self) -> None:
        """A child's loop. Its parent cancels it in the engine, and its calls still get their outcomes."""
        loop = asyncio.create_task(self._loop())
        try:
            await asyncio.shield(loop)
        except asyncio.CancelledError:
            if self._stopping is None or self._stopping.kind == "complete":
                self._stopping = Stop("", "cancel", NOBODY, rules.CALLED_OFF)
            if self._turn is not None and not self._turn.canceled:
                self._cancel_reason = rules.CALLED_OFF
                self._turn.cancel()
            await loop

    def _tell_start(self) -> None:
        given, info = self._given, workflow.info()
        if given.carried is not None:
            self._facts.add(
                SessionContinued("session_continued", info.run_id, given.carried.previous_run)
            )
            return
        self._facts.add(
            SessionStarted(
                "session_started",
                given.agent,
                given.title,
                given.started_by,
                dict(given.labels),
                info.run_id,
                given.limits,
                given.parent,
            )
        )
        if given.settings:
            self._change_settings(given.settings, given.started_by)
        for message in self._queue:
            self._facts.add(MessageQueued("message_queued", message))

    async def _next_message(self) -> bool:
        """Wait, idle, until there is a message (True) or the session is to end (False)."""
        causes = [self._last_step] if self._last_step else []
        turn = max(self._turn_number, 1)
        if self._has_message() and (self._stopping is None or self._stopping.kind == "complete"):
            step = self._steps.new("AwaitMessage", turn, causes, status="completed")
            self._last_step = step.step_id
            return True
        self._set_phase("idle")
        step = self._steps.new("AwaitMessage", turn, causes, status="waiting")
        self._last_step = step.step_id
        if self._stopping is None:
            await self._facts.flush()
            await workflow.wait_condition(lambda: self._has_message() or self._stopping is not None)
        if self._stopping is not None:
            self._steps.change(step, "canceled")
            return False
        self._steps.change(step, "completed")
        return True

    def _has_message(self) -> bool:
        return bool(self._queue or self._steered)

    async def _run_turn(self) -> tuple[str, str, Actor | None]:
        """Returns how it ended, why, and who canceled it."""
        message = (self._steered or self._queue).pop(0)
        self._turn_number += 1
        self._facts.add(TurnStarted("turn_started", self._turn_number, message.message_id))
        self._turn = Turn(
            Scope(
                self._given,
                self._turn_number,
                self._facts,
                self._steps,
                self._interrupts,
                self._set_phase,
                self._steered,
                self._spend,
            )
        )
        state, reason, self._last_step = await self._turn.run(self._last_step)
        if state == "canceled":
            reason = self._cancel_reason
        by = self._canceled_by if state == "canceled" else None
        self._set_phase("idle")
        info = workflow.info()
        self._facts.add(
            TurnEnded(
                "turn_ended",
                self._turn_number,
                state,  # type: ignore[arg-type]
                reason,
                by,
                info.get_current_history_length(),
                info.get_current_history_size(),
            )
        )
        self._turn = None
        self._cancel_reason, self._canceled_by = "", None
        return state, reason, by

    async def _close(self) -> str:
        stop = self._stopping
        assert stop is not None
        status = CLOSES_AS[stop.kind]
        self._closed = True
        by = stop.actor if stop.actor.id else None
        self._facts.add(SessionClosed("session_closed", status, stop.reason, by))  # type: ignore[arg-type]
        await self._facts.flush()
        await workflow.wait_condition(workflow.all_handlers_finished)
        if stop.kind == "fail":
            raise ApplicationError(stop.reason or "Failed by a person", type="SessionFailed")
        return status

    def _should_continue(self) -> bool:
        info, limits = workflow.info(), self._given.limits
        return (
            info.is_continue_as_new_suggested()
            or info.get_current_history_length() >= limits.continue_events
            or info.get_current_history_size() >= limits.continue_bytes
            or self._updates >= limits.continue_updates
        )

    async def _continue_as_new(self) -> None:
        """Returns only if the session is to be ended at once: the next run would not know for whom."""
        await self._facts.flush()
        # A stop that came meanwhile answers once the session is closed, which this run then does.
        await workflow.wait_condition(lambda: workflow.all_handlers_finished() or self._ends_now())
        if self._ends_now():
            return
        given = self._given
        workflow.continue_as_new(
            SessionInput(
                session_id=given.session_id,
                agent=given.agent,
                title=given.title,
                pool=given.pool,
                started_by=given.started_by,
                labels=given.labels,
                limits=given.limits,
                record_facts=given.record_facts,
                parent=given.parent,
                carried=CarriedState(
                    turn=self._turn_number,
                    facts=self._facts.last,
                    step_numbers=self._steps.numbers,
                    position=self._steps.position,
                    queue=self._queue,
                    ledger=self._ledger,
                    last_step=self._last_step,
                    previous_run=workflow.info().run_id,
                    steered=self._steered,
                    settings_revision=self._settings_revision,
                    spend_raised=self._spend.raised,
                    stopping=self._stopping,
                ),
            )
        )

    def _ends_now(self) -> bool:
        return self._stopping is not None and (
            self._stopping.kind != "complete" or not self._has_message()
        )
