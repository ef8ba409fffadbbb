"""The sockets: one session's AgentEvents, and what changed in the two lists."""

import asyncio
import json
from typing import Any
from urllib.parse import parse_qs

from channels.db import database_sync_to_async

from approvals_app.rules import counted_keys, tied_to
from sessions_app.stream.closing import BAD_MESSAGE, NOT_FOUND, Closed
from sessions_app.stream.feed import Reader
from sessions_app.stream.read import EventsGone, Item, gaps, items_after, position
from sessions_app.stream.socket import Socket
from sessions_app.stream.tail import watch_approvals, watch_session, watch_sessions
from sessions_app.stream.window import Window


class EventsSocket(Socket):
    """``/ws/sessions/<id>/events?after=<seq>``: the protocol is in docs/agent-events.md."""

    permission = "sessions_app.view_session"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.session_id = self.kwargs["session_id"]
        self.window = Window()
        self.wake = asyncio.Event()
        self.cursor = 0
        self.old_until = 0

    async def serve(self) -> None:
        self.cursor = self._asked_after()
        newest, retained_from = await database_sync_to_async(position)(self.session_id)
        self.old_until = newest
        await self.hello(seq=newest, retained_from=retained_from)
        with watch_session(self.session_id, self.cursor, newest, self.wake.set) as reader:
            if self.cursor != newest:
                await self._send_events(reader, await self._catch_up(reader))
            while True:
                self.wake.clear()
                items = await self._next(reader)
                if items:
                    await self._send_events(reader, items)
                else:
                    await self.wake.wait()

    def received(self, message: dict[str, Any]) -> None:
        if message["type"] != "ack":
            return
        seq = message.get("seq")
        if type(seq) is not int or seq > self.cursor:
            raise Closed(BAD_MESSAGE)
        self.window.acknowledged(seq)
        self.wake.set()

    async def _next(self, reader: Reader) -> list[Item]:
        """What can be sent now; nothing when there is nothing, or no room for it."""
        if reader.feed.gone:
            raise Closed(NOT_FOUND)
        items = reader.take(*self.window.room, at_least=int(self.window.empty))
        if items is None and self.window.roomy:
            items = await self._catch_up(reader)
        return items or []

    async def _catch_up(self, reader: Reader) -> list[Item]:
        """From the database, since the feed has let go of what this socket needs next."""
        try:
            return await database_sync_to_async(items_after)(
                self.session_id, self.cursor, *self.window.room
            )
        except EventsGone as gone:
            await self.say(
                "reset",
                reason=gone.reason,
                snapshot=gone.snapshot,
                seq=gone.last_seq,
                retained_from=gone.retained_from,
            )
            self.cursor = gone.last_seq
            reader.advance(self.cursor)
            self.window.clear()
            self.wake.set()  # there may be newer ones by now
            return []

    async def _send_events(self, reader: Reader, items: list[Item]) -> None:
        old = [item for item in items if item.seq <= self.old_until]
        for part, replay in ((old, True), (items[len(old) :], False)):
            if part:
                # Before the send, so that an acknowledgement never comes too early.
                after, self.cursor = self.cursor, part[-1].seq
                reader.advance(self.cursor)
                self.window.sent([item for item in part if item.text])
                await self.send(_events(after, part, replay))

    def _asked_after(self) -> int:
        asked = parse_qs(self.scope["query_string"].decode("latin1")).get("after", ["0"])[-1]
        if not (asked.isascii() and asked.isdigit() and len(asked) <= 18):
            raise Closed(BAD_MESSAGE)
        return int(asked)


class SessionsSocket(Socket):
    """``/ws/sessions``: ids of sessions whose rows changed, at most twice a second."""

    permission = "sessions_app.view_session"

    async def serve(self) -> None:
        wake = asyncio.Event()
        await self.hello()
        with watch_sessions(wake.set) as reader:
            while True:
                await wake.wait()
                wake.clear()
                ids, overflowed = reader.take()
                if overflowed:
                    await self.say("sessions", ids=[], more=True)
                elif ids:
                    await self.say("sessions", ids=ids)


class ApprovalsSocket(Socket):
    """``/ws/approvals``: ids of approvals that came, changed or went, and how many are pending."""

    permission = "approvals_app.view_interrupt"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.keys: frozenset[str] | None = frozenset()
        self.tied: frozenset[int] = frozenset()

    async def admitted(self) -> None:
        await database_sync_to_async(self._read_keys)()

    def _read_keys(self) -> None:
        self.keys = counted_keys(self.user)
        self.tied = frozenset(tied_to(self.user))

    async def serve(self) -> None:
        wake = asyncio.Event()
        await self.hello()
        lent = None
        with watch_approvals(wake.set) as (reader, approvals):
            while True:
                await wake.wait()
                wake.clear()
                ids, overflowed = reader.take()
                if approvals.looked:
                    if approvals.lent != lent:
                        # Somebody handed a permission over, or it came to its end.
                        lent = approvals.lent
                        await self.admitted()
                    more = {"more": True} if overflowed else {}
                    pending = approvals.pending(self.keys, self.tied)
                    await self.say("approvals", ids=ids, pending=pending, **more)


def _events(after: int, items: list[Item], replay: bool) -> str:
    """The message, put together from events that were rendered once for everybody."""
    texts = ",".join(item.text for item in items if item.text)
    numbers = [item.seq if item.text else item.seq + 1 for item in items]
    trimmed = json.dumps(gaps(after, numbers))
    flag = "true" if replay else "false"
    return f'{{"type":"events","events":[{texts}],"replay":{flag},"trimmed":{trimmed}}}'
