"""RPCs on the messages that wait for the agent."""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from sessions_app.flow import rules
    from sessions_app.flow.fact import MessageQueued
    from sessions_app.flow.rpcs.base import SessionState
    from sessions_app.flow.state import RpcAnswer, SendMessage
    from sessions_app.flow.terms import UserMessage


class QueueRpcs(SessionState):
    @workflow.update
    async def send_message(self, rpc: SendMessage) -> RpcAnswer:
        return await self._once(rpc, lambda: self._send(rpc), "queue")

    @send_message.validator
    def check_send_message(self, rpc: SendMessage) -> None:
        if not self._is_new(rpc, "queue"):
            return
        self._check_taking_messages()
        if not rpc.text.strip():
            raise rules.refuse("blank_message")
        size, limit = len(rpc.text.encode()), self._given.limits.message_bytes
        if size > limit:
            raise rules.refuse("too_large", size=size, limit=limit)
        if not rules.queue_has_room(self._queue, rpc.text, self._given.limits.queue_bytes):
            raise rules.refuse("queue_full", waiting=len(self._queue))

    async def _send(self, rpc: SendMessage) -> tuple[str, str]:
        message = UserMessage(rpc.request_id, rpc.text, rpc.actor, workflow.now().isoformat())
        self._queue.append(message)
        self._facts.add(MessageQueued("message_queued", message))
        return message.message_id, "queued"
