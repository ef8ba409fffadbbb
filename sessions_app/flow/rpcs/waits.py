"""RPCs on what built-in tools wait for: an answer, or a timer that a person may skip."""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from sessions_app.flow import rules
    from sessions_app.flow.rpcs.base import SessionState
    from sessions_app.flow.state import AnswerQuestion, RpcAnswer, SkipWait


class WaitRpcs(SessionState):
    @workflow.update
    async def answer_question(self, rpc: AnswerQuestion) -> RpcAnswer:
        return await self._once(rpc, lambda: self._answer(rpc), f"interrupt:{rpc.interrupt_id}")

    @answer_question.validator
    def check_answer_question(self, rpc: AnswerQuestion) -> None:
        if self._is_new(rpc, f"interrupt:{rpc.interrupt_id}"):
            self._interrupts.check_answer(rpc)

    async def _answer(self, rpc: AnswerQuestion) -> tuple[str, str]:
        self._interrupts.answer(self._interrupts.check_answer(rpc), rpc)
        return rpc.interrupt_id, "answered"

    @workflow.update
    async def skip_wait(self, rpc: SkipWait) -> RpcAnswer:
        return await self._once(rpc, lambda: self._skip(rpc), f"timer:{rpc.step_id}")

    @skip_wait.validator
    def check_skip_wait(self, rpc: SkipWait) -> None:
        if not self._is_new(rpc, f"timer:{rpc.step_id}"):
            return
        self._check_open()
        if self._turn is None:
            raise rules.refuse("not_waiting", step_id=rpc.step_id)
        self._turn.timers.check(rpc.step_id)

    async def _skip(self, rpc: SkipWait) -> tuple[str, str]:
        assert self._turn is not None
        timers = self._turn.timers
        timers.skip(timers.check(rpc.step_id), rpc.actor)
        return rpc.step_id, "skipped"
