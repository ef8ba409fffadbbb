"""RPCs on the messages that wait for the agent."""

from __future__ import annotations

from dataclasses import replace

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from sessions_app.flow import rules
    from sessions_app.flow.fact import (
        MessageDeleted,
        MessageEdited,
        MessageQueued,
        MessageSteered,
    )
    from sessions_app.flow.rpcs.base import SessionState
    from sessions_app.flow.state import DeleteQueued, EditQueued, RpcAnswer, SendMessage, Steer
    from sessions_app.flow.terms import UserMessage


class QueueRpcs(SessionState):
    """Two channels: what is queued begins a turn each, what is steered is read by the one that runs."""

    @workflow.update
    async def send_message(self, rpc: SendMessage) -> RpcAnswer:
        return await self._once(rpc, lambda: self._send(rpc), "queue")

    @send_message.validator
    def check_send_message(self, rpc: SendMessage) -> None:
        if self._is_new(rpc, "queue"):
            # Without a turn it begins one, and after that there is a new run.
            if self._turn is not None:
                self._check_room()
            self._check_taking_messages()
            self._interrupts.check_no_question()
            self._check_text(rpc.text, self._waiting())

    async def _send(self, rpc: SendMessage) -> tuple[str, str]:
        message = UserMessage(rpc.request_id, rpc.text, rpc.actor, workflow.now().isoformat())
        self._queue.append(message)
        self._facts.add(MessageQueued("message_queued", message))
        return message.message_id, "queued"

    @workflow.update
    async def edit_queued(self, rpc: EditQueued) -> RpcAnswer:
        return await self._once(rpc, lambda: self._edit(rpc), "queue")

    @edit_queued.validator
    def check_edit_queued(self, rpc: EditQueued) -> None:
        if self._is_new(rpc, "queue"):
            self._check_open()
            self._check_room()
            channel, index = self._find(rpc.message_id)
            others = [one for one in self._waiting() if one is not channel[index]]
            self._check_text(rpc.text, others)

    async def _edit(self, rpc: EditQueued) -> tuple[str, str]:
        channel, index = self._find(rpc.message_id)
        channel[index] = replace(channel[index], text=rpc.text, edited_by=rpc.actor)
        self._facts.add(MessageEdited("message_edited", rpc.message_id, rpc.text, rpc.actor))
        return rpc.message_id, "edited"

    @workflow.update
    async def delete_queued(self, rpc: DeleteQueued) -> RpcAnswer:
        return await self._once(rpc, lambda: self._delete(rpc), "queue")

    @delete_queued.validator
    def check_delete_queued(self, rpc: DeleteQueued) -> None:
        if self._is_new(rpc, "queue"):
            self._check_open()
            self._check_room()
            self._find(rpc.message_id)

    async def _delete(self, rpc: DeleteQueued) -> tuple[str, str]:
        channel, index = self._find(rpc.message_id)
        del channel[index]
        self._facts.add(MessageDeleted("message_deleted", rpc.message_id, rpc.actor))
        return rpc.message_id, "deleted"

    @workflow.update
    async def steer(self, rpc: Steer) -> RpcAnswer:
        return await self._once(rpc, lambda: self._steer(rpc), "queue")

    @steer.validator
    def check_steer(self, rpc: Steer) -> None:
        if self._is_new(rpc, "queue"):
            self._check_open()
            self._check_room()
            self._find(rpc.message_id)

    async def _steer(self, rpc: Steer) -> tuple[str, str]:
        """What the turn waits for is settled by what people just said: the agent is to read it now."""
        channel, index = self._find(rpc.message_id)
        if channel is self._queue:
            self._steered.append(self._queue.pop(index))
            self._facts.add(MessageSteered("message_steered", rpc.message_id, rpc.actor))
            self._interrupts.supersede(rules.steered_words(rpc.actor.name))
            if self._turn is not None:
                self._turn.timers.skip_all(rpc.actor)
        return rpc.message_id, "steered"

    def _waiting(self) -> list[UserMessage]:
        return [*self._queue, *self._steered]

    def _find(self, message_id: str) -> tuple[list[UserMessage], int]:
        """(the channel that holds it, its place there); refuses once the agent has taken it."""
        for channel in (self._queue, self._steered):
            for index, message in enumerate(channel):
                if message.message_id == message_id:
                    return channel, index
        raise rules.refuse("message_not_found", message_id=message_id)

    def _check_text(self, text: str, waiting: list[UserMessage]) -> None:
        if not text.strip():
            raise rules.refuse("blank_message")
        rules.check_size(text, self._given.limits.message_bytes)
        if not rules.queue_has_room(waiting, text, self._given.limits.queue_bytes):
            raise rules.refuse("queue_full", waiting=len(waiting))
