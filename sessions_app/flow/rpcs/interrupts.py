"""RPCs on waits for a person."""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from sessions_app.flow.rpcs.base import SessionState
    from sessions_app.flow.state import (
        ExtendDeadline,
        HoldInterrupt,
        ReleaseInterrupt,
        ResolveInterrupt,
        RpcAnswer,
    )


class InterruptRpcs(SessionState):
    @workflow.update
    async def resolve_interrupt(self, rpc: ResolveInterrupt) -> RpcAnswer:
        return await self._once(rpc, lambda: self._resolve(rpc), _lock(rpc))

    @resolve_interrupt.validator
    def check_resolve_interrupt(self, rpc: ResolveInterrupt) -> None:
        if self._is_new(rpc, _lock(rpc)):
            self._interrupts.check(rpc)

    async def _resolve(self, rpc: ResolveInterrupt) -> tuple[str, str]:
        return rpc.interrupt_id, self._interrupts.vote(self._interrupts.check(rpc), rpc)

    @workflow.update
    async def hold_interrupt(self, rpc: HoldInterrupt) -> RpcAnswer:
        return await self._once(rpc, lambda: self._hold(rpc), _lock(rpc))

    @hold_interrupt.validator
    def check_hold_interrupt(self, rpc: HoldInterrupt) -> None:
        if not self._is_new(rpc, _lock(rpc)):
            return
        self._check_room()
        interrupt = self._interrupts.pending(rpc.interrupt_id)
        if not rpc.take_over:
            self._interrupts.check_hold(interrupt, rpc.actor)

    async def _hold(self, rpc: HoldInterrupt) -> tuple[str, str]:
        hold = self._interrupts.keep(self._interrupts.pending(rpc.interrupt_id), rpc)
        return rpc.interrupt_id, hold.until.isoformat()

    @workflow.update
    async def release_interrupt(self, rpc: ReleaseInterrupt) -> RpcAnswer:
        return await self._once(rpc, lambda: self._release(rpc), _lock(rpc))

    @release_interrupt.validator
    def check_release_interrupt(self, rpc: ReleaseInterrupt) -> None:
        if self._is_new(rpc, _lock(rpc)):
            self._check_room()
            self._interrupts.check_hold(self._interrupts.pending(rpc.interrupt_id), rpc.actor)

    async def _release(self, rpc: ReleaseInterrupt) -> tuple[str, str]:
        interrupt = self._interrupts.pending(rpc.interrupt_id)
        if interrupt.hold is not None:
            self._interrupts.let_go(interrupt, rpc.actor)
        return rpc.interrupt_id, "released"

    @workflow.update
    async def extend_deadline(self, rpc: ExtendDeadline) -> RpcAnswer:
        return await self._once(rpc, lambda: self._extend(rpc), _lock(rpc))

    @extend_deadline.validator
    def check_extend_deadline(self, rpc: ExtendDeadline) -> None:
        if self._is_new(rpc, _lock(rpc)):
            self._check_room()
            self._interrupts.check_extension(rpc)

    async def _extend(self, rpc: ExtendDeadline) -> tuple[str, str]:
        # Its bounds were the validator's to check, in this very moment: no replay asks them again.
        self._interrupts.extend(self._interrupts.pending(rpc.interrupt_id), rpc)
        return rpc.interrupt_id, rpc.until


def _lock(rpc: ResolveInterrupt | HoldInterrupt | ReleaseInterrupt | ExtendDeadline) -> str:
    return f"interrupt:{rpc.interrupt_id}"
