"""The session Flow: one durable conversation. Deterministic; the engine replays it at will.

What happened is in this class; rows are its projection. It does no I/O, reads no clock but the
engine's, and uses neither local activities nor queries (both broke replay beside updates).
"""

from __future__ import annotations

import asyncio

from temporalio import workflow
from temporalio.exceptions import ApplicationError

with workflow.unsafe.imports_passed_through():
    from sessions_app.flow import rules
    from sessions_app.flow.fact import (
        MessageQueued,
        PhaseChanged,
        SessionClosed,
        SessionContinued,
        SessionStarted,
        TurnEnded,
        TurnStarted,
    )
    from sessions_app.flow.interrupts import Interrupts
    from sessions_app.flow.locks import Locks
    from sessions_app.flow.recorder import FactLog, StepLog
    from sessions_app.flow.state import (
        CancelTurn,
        CarriedState,
        ExtendDeadline,
        HoldInterrupt,
        ReleaseInterrupt,
        ResolveInterrupt,
        RpcAnswer,
        SendMessage,
        SessionInput,
        Stop,
    )
    from sessions_app.flow.terms import Actor, UserMessage
    from sessions_app.flow.turn import Turn

CLOSES_AS = {"complete": "completed", "cancel": "canceled", "fail": "failed"}


@workflow.defn(name="Session")
class SessionFlow:
    @workflow.init
    def __init__(self, given: SessionInput) -> None:
        before = given.carried
        self._given = given
        self._facts = FactLog(
            given.session_id, before.facts if before else 0, enabled=given.record_facts
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
        self._ledger: dict[str, RpcAnswer] = dict(before.ledger) if before else {}
        self._last_step = before.last_step if before else ""
        self._phase = ""
        self._turn: Turn | None = None
        self._cancel_reason = ""
        self._canceled_by: Actor | None = None
        self._stopping: Stop | None = None
        self._closed = False
        self._updates = 0
        if before is None and given.first_message is not None:
            self._queue.append(given.first_message)
        # Here and not in run: an RPC that comes with the start is handled before run begins.
        self._tell_start()

    @workflow.run
    async def run(self, given: SessionInput) -> str:
        """Returns the status that the session closed with."""
        try:
            while await self._next_message():
                await self._run_turn()
                if self._should_continue() and not self._stopping:
                    await self._continue_as_new()
        except asyncio.CancelledError:
            # The engine itself was asked to cancel, past our own RPC.
            self._stopping = Stop("", "cancel", Actor(0, ""), "Canceled in the engine.")
        return await self._close()

    # The loop ---------------------------------------------------------------------------------

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
            )
        )
        for message in self._queue:
            self._facts.add(MessageQueued("message_queued", message))

    async def _next_message(self) -> bool:
        """Wait, idle, until there is a message (True) or the session is to end (False)."""
        causes = [self._last_step] if self._last_step else []
        turn = max(self._turn_number, 1)
        if self._queue and (self._stopping is None or self._stopping.kind == "complete"):
            step = self._steps.new("AwaitMessage", turn, causes, status="completed")
            self._last_step = step.step_id
            return True
        self._set_phase("idle")
        step = self._steps.new("AwaitMessage", turn, causes, status="waiting")
        self._last_step = step.step_id
        if self._stopping is None:
            await self._facts.flush()
            await workflow.wait_condition(lambda: bool(self._queue) or self._stopping is not None)
        if self._stopping is not None:
            self._steps.change(step, "canceled")
            return False
        self._steps.change(step, "completed")
        return True

    async def _run_turn(self) -> None:
        message = self._queue.pop(0)
        self._turn_number += 1
        self._facts.add(TurnStarted("turn_started", self._turn_number, message.message_id))
        self._turn = Turn(
            self._given,
            self._turn_number,
            self._facts,
            self._steps,
            self._interrupts,
            self._set_phase,
        )
        state, reason, self._last_step = await self._turn.run(self._last_step)
        if state == "canceled":
            reason = self._cancel_reason
        self._set_phase("idle")
        self._facts.add(
            TurnEnded(
                "turn_ended",
                self._turn_number,
                state,  # type: ignore[arg-type]
                reason,
                self._canceled_by if state == "canceled" else None,
            )
        )
        self._turn = None
        self._cancel_reason, self._canceled_by = "", None

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
        await self._facts.flush()
        await workflow.wait_condition(workflow.all_handlers_finished)
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
                carried=CarriedState(
                    turn=self._turn_number,
                    facts=self._facts.last,
                    step_numbers=self._steps.numbers,
                    position=self._steps.position,
                    queue=self._queue,
                    ledger=self._ledger,
                    last_step=self._last_step,
                    previous_run=workflow.info().run_id,
                ),
            )
        )

    def _set_phase(self, phase: str) -> None:
        if phase != self._phase:
            self._phase = phase
            self._facts.add(PhaseChanged("phase_changed", phase))

    # RPCs -------------------------------------------------------------------------------------
    # A validator refuses without a trace in history; its handler starts in the same activation,
    # before any other update's validator runs, so what was checked still holds.

    @workflow.update
    async def send_message(self, rpc: SendMessage) -> RpcAnswer:
        if rpc.request_id in self._ledger:
            return self._ledger[rpc.request_id]
        with self._locks.taken(rpc.actor.name, "queue"):
            message = UserMessage(rpc.request_id, rpc.text, rpc.actor, workflow.now().isoformat())
            self._queue.append(message)
            self._facts.add(MessageQueued("message_queued", message))
            return await self._answer(rpc.request_id, message.message_id, "queued")

    @send_message.validator
    def check_send_message(self, rpc: SendMessage) -> None:
        if rpc.request_id in self._ledger:
            return
        self._check_taking_messages()
        if not rpc.text.strip():
            raise rules.refuse("blank_message")
        size, limit = len(rpc.text.encode()), self._given.limits.message_bytes
        if size > limit:
            raise rules.refuse("too_large", size=size, limit=limit)
        if not rules.queue_has_room(self._queue, rpc.text, self._given.limits.queue_bytes):
            raise rules.refuse("queue_full", waiting=len(self._queue))
        self._locks.check("queue")

    @workflow.update
    async def resolve_interrupt(self, rpc: ResolveInterrupt) -> RpcAnswer:
        if rpc.request_id in self._ledger:
            return self._ledger[rpc.request_id]
        with self._locks.taken(rpc.actor.name, f"interrupt:{rpc.interrupt_id}"):
            state = self._interrupts.vote(self._interrupts.check(rpc), rpc)
            return await self._answer(rpc.request_id, rpc.interrupt_id, state)

    @resolve_interrupt.validator
    def check_resolve_interrupt(self, rpc: ResolveInterrupt) -> None:
        if rpc.request_id in self._ledger:
            return
        self._locks.check(f"interrupt:{rpc.interrupt_id}")
        self._interrupts.check(rpc)

    @workflow.update
    async def hold_interrupt(self, rpc: HoldInterrupt) -> RpcAnswer:
        if rpc.request_id in self._ledger:
            return self._ledger[rpc.request_id]
        with self._locks.taken(rpc.actor.name, f"interrupt:{rpc.interrupt_id}"):
            hold = self._interrupts.keep(self._interrupts.pending(rpc.interrupt_id), rpc)
            return await self._answer(rpc.request_id, rpc.interrupt_id, hold.until.isoformat())

    @hold_interrupt.validator
    def check_hold_interrupt(self, rpc: HoldInterrupt) -> None:
        if rpc.request_id in self._ledger:
            return
        self._locks.check(f"interrupt:{rpc.interrupt_id}")
        interrupt = self._interrupts.pending(rpc.interrupt_id)
        if not rpc.take_over:
            self._interrupts.check_hold(interrupt, rpc.actor)

    @workflow.update
    async def release_interrupt(self, rpc: ReleaseInterrupt) -> RpcAnswer:
        if rpc.request_id in self._ledger:
            return self._ledger[rpc.request_id]
        with self._locks.taken(rpc.actor.name, f"interrupt:{rpc.interrupt_id}"):
            interrupt = self._interrupts.pending(rpc.interrupt_id)
            if interrupt.hold is not None:
                self._interrupts.let_go(interrupt, rpc.actor)
            return await self._answer(rpc.request_id, rpc.interrupt_id, "released")

    @release_interrupt.validator
    def check_release_interrupt(self, rpc: ReleaseInterrupt) -> None:
        if rpc.request_id in self._ledger:
            return
        self._locks.check(f"interrupt:{rpc.interrupt_id}")
        self._interrupts.check_hold(self._interrupts.pending(rpc.interrupt_id), rpc.actor)

    @workflow.update
    async def extend_deadline(self, rpc: ExtendDeadline) -> RpcAnswer:
        if rpc.request_id in self._ledger:
            return self._ledger[rpc.request_id]
        with self._locks.taken(rpc.actor.name, f"interrupt:{rpc.interrupt_id}"):
            self._interrupts.extend(self._interrupts.check_extension(rpc), rpc)
            return await self._answer(rpc.request_id, rpc.interrupt_id, rpc.until)

    @extend_deadline.validator
    def check_extend_deadline(self, rpc: ExtendDeadline) -> None:
        if rpc.request_id in self._ledger:
            return
        self._locks.check(f"interrupt:{rpc.interrupt_id}")
        self._interrupts.check_extension(rpc)

    @workflow.update
    async def cancel_turn(self, rpc: CancelTurn) -> RpcAnswer:
        if rpc.request_id in self._ledger:
            return self._ledger[rpc.request_id]
        with self._locks.taken(rpc.actor.name, "turn"):
            turn = self._turn
            assert turn is not None
            self._cancel_reason, self._canceled_by = rpc.reason, rpc.actor
            turn.cancel()
            await workflow.wait_condition(lambda: self._turn is not turn)
            return await self._answer(rpc.request_id, str(turn.number), "canceled")

    @cancel_turn.validator
    def check_cancel_turn(self, rpc: CancelTurn) -> None:
        if rpc.request_id in self._ledger:
            return
        self._check_open()
        if self._turn is None:
            raise rules.refuse("no_turn")
        self._locks.check("turn")

    @workflow.update
    async def stop(self, rpc: Stop) -> RpcAnswer:
        if rpc.request_id in self._ledger:
            return self._ledger[rpc.request_id]
        self._stopping = rpc
        if rpc.kind != "complete" and self._turn is not None and not self._turn.canceled:
            self._cancel_reason, self._canceled_by = rpc.reason, rpc.actor
            self._turn.cancel()
        if rpc.kind != "complete" or self._turn is None:
            await workflow.wait_condition(lambda: self._closed)
        return await self._answer(rpc.request_id, self._given.session_id, CLOSES_AS[rpc.kind])

    @stop.validator
    def check_stop(self, rpc: Stop) -> None:
        if rpc.request_id in self._ledger:
            return
        self._check_open()

    def _check_open(self) -> None:
        if self._closed:
            assert self._stopping is not None
            raise rules.refuse("session_closed", session_status=CLOSES_AS[self._stopping.kind])

    def _check_taking_messages(self) -> None:
        if self._stopping is not None:
            raise rules.refuse("session_closed", session_status=CLOSES_AS[self._stopping.kind])

    async def _answer(self, request_id: str, id: str, state: str) -> RpcAnswer:
        """Answer once the facts are recorded, so that the page that follows reads them."""
        self._updates += 1
        answer = RpcAnswer(id, workflow.now().isoformat(), state)
        rules.remember(self._ledger, request_id, answer)
        await self._facts.flush()
        return answer
