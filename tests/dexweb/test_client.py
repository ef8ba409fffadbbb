"""The engine's door: how often it knocks again, and when it gives up."""

import time
import uuid
from itertools import pairwise

import pytest
from temporalio.service import RPCError, RPCStatusCode

from dexweb.engine.client import SessionEngine
from dexweb.engine.errors import EngineUnavailable, RpcLockConflict
from sessions_app.flow.state import RpcAnswer, SendMessage
from sessions_app.flow.terms import Actor

ANSWER = RpcAnswer("m-1", "2026-03-01T12:00:00+00:00", "queued")


class Door(SessionEngine):
    """An engine that answers with what it is given, one after the other, the last for ever."""

    def __init__(self, *answers):
        super().__init__()
        self.answers = list(answers)
        self.asked = []

    async def _send(self, session_id, name, rpc):
        self.asked.append((time.monotonic(), rpc.request_id))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def ask(self):
        rpc = SendMessage(str(uuid.uuid4()), "Hello", Actor(1, "ann"))
        return await self.send_message("s-1", rpc)


def held(kind):
    return RpcLockConflict(keys=["queue"], holder="bob", lock_kind=kind, since="12:00")


async def test_a_short_lock_is_waited_out_under_the_same_request_id():
    door = Door(held("rpc"), held("rpc"), held("rpc"), ANSWER)
    assert await door.ask() == ANSWER
    assert len({request_id for _, request_id in door.asked}) == 1
    times = [at for at, _ in door.asked]
    pauses = [later - at for at, later in pairwise(times)]
    assert len(pauses) == 3
    assert pauses[0] < pauses[2]


async def test_a_lock_that_stays_is_told_with_its_holder_after_two_seconds():
    door = Door(held("rpc"))
    began = time.monotonic()
    with pytest.raises(RpcLockConflict) as refusal:
        await door.ask()
    assert 1.5 < time.monotonic() - began < 3
    assert (refusal.value.holder, refusal.value.since) == ("bob", "12:00")
    assert len(door.asked) < 40


async def test_what_a_person_holds_is_not_asked_for_again():
    door = Door(held("hold"))
    with pytest.raises(RpcLockConflict):
        await door.ask()
    assert len(door.asked) == 1


async def test_a_session_with_too_many_requests_at_once_is_asked_again():
    busy = RPCError("too many in flight", RPCStatusCode.RESOURCE_EXHAUSTED, b"")
    door = Door(busy, busy, ANSWER)
    assert await door.ask() == ANSWER


async def test_an_engine_that_stays_overloaded_counts_as_away():
    door = Door(RPCError("too many in flight", RPCStatusCode.RESOURCE_EXHAUSTED, b""))
    with pytest.raises(EngineUnavailable):
        await door.ask()
