"""RPCs on what a session may spend."""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from sessions_app.flow.rpcs.base import SessionState
    from sessions_app.flow.state import RaiseSpend, RpcAnswer


class SpendRpcs(SessionState):
    @workflow.update
    async def raise_spend(self, rpc: RaiseSpend) -> RpcAnswer:
        return await self._once(rpc, lambda: self._raise_spend(rpc), "spend")

    @raise_spend.validator
    def check_raise_spend(self, rpc: RaiseSpend) -> None:
        if self._is_new(rpc, "spend"):
            self._check_open()
            self._spend.check_blocked()

    async def _raise_spend(self, rpc: RaiseSpend) -> tuple[str, str]:
        self._spend.raise_by(rpc)
        return self._given.session_id, self._spend.raised
