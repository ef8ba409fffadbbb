"""RPCs that end a turn or the session."""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from sessions_app.flow import rules
    from sessions_app.flow.rpcs.base import CLOSES_AS, SessionState
    from sessions_app.flow.state import CancelTurn, RpcAnswer, Stop


class EndingRpcs(SessionState):
    @workflow.update
    async def cancel_turn(self, rpc: CancelTurn) -> RpcAnswer:
        return await self._once(rpc, lambda: self._cancel(rpc), "turn")

    @cancel_turn.validator
    def check_cancel_turn(self, rpc: CancelTurn) -> None:
        if not self._is_new(rpc, "turn"):
            return
        self._check_open()
        if self._turn is None or self._turn.canceled:
            raise rules.refuse("no_turn")

    async def _cancel(self, rpc: CancelTurn) -> tuple[str, str]:
        turn = self._turn
        assert turn is not None
        self._cancel_reason, self._canceled_by = rpc.reason, rpc.actor
        turn.cancel()
        await workflow.wait_condition(lambda: self._turn is not turn)
        return str(turn.number), "canceled"

    @workflow.update
    async def stop(self, rpc: Stop) -> RpcAnswer:
        return await self._once(rpc, lambda: self._stop(rpc))

    @stop.validator
    def check_stop(self, rpc: Stop) -> None:
        if self._is_new(rpc):
            self._check_open()
            self._check_not_ending()

    async def _stop(self, rpc: Stop) -> tuple[str, str]:
        self._stopping = rpc
        if rpc.kind != "complete" and self._turn is not None and not self._turn.canceled:
            self._cancel_reason, self._canceled_by = rpc.reason, rpc.actor
            self._turn.cancel()
        if rpc.kind != "complete" or (self._turn is None and not self._queue and not self._steered):
            await workflow.wait_condition(lambda: self._closed)
        # One that was to complete may have been made to end at once in the meantime.
        return self._given.session_id, CLOSES_AS[self._stopping.kind]

    def _check_not_ending(self) -> None:
        """Refuse once it ends at once: a later word neither revives it nor makes it another end."""
        if self._stopping is not None and self._stopping.kind != "complete":
            raise rules.refuse("session_closed", session_status=CLOSES_AS[self._stopping.kind])
