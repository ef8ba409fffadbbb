"""The tail: one reader of the database in each web process, for all of its sockets.

It notices commits, reads what is new for what somebody watches, renders it once and hands it to
their feeds. It starts with the first socket of the running loop and stops with the last.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from django.db import DatabaseError, connection

from sessions_app.models import Session
from sessions_app.stream.alarm import alarm
from sessions_app.stream.changes import ApprovalChanges, SessionChanges
from sessions_app.stream.feed import Feed, ListReader, Reader
from sessions_app.stream.read import Item, items_up_to

T = TypeVar("T")
logger = logging.getLogger(__name__)

LOOK_ANYWAY = 3.0  # seconds between looks when nothing was noticed
LISTS_EVERY = 0.5
BATCH_EVENTS = 256
BATCH_BYTES = 256 * 1024
BATCHES_A_LOOK = 8

_tails: "WeakKeyDictionary[asyncio.AbstractEventLoop, Tail]" = WeakKeyDictionary()


@contextlib.contextmanager
def watch_session(
    session_id: str, after: int, last_seq: int, wake: Callable[[], None]
) -> Iterator[Reader]:
    """A reader of this session's events above ``after``; ``last_seq`` is its newest number now."""
    with _tail() as tail:
        feed = tail.feeds.get(session_id)
        if feed is None:
            feed = tail.feeds[session_id] = Feed(last_seq, drained=tail.ring)
            tail.ring()  # something may have been committed since last_seq was read
        reader = Reader(feed, after, wake)
        feed.readers.add(reader)
        reader.advance(after)
        try:
            yield reader
        finally:
            feed.readers.discard(reader)
            if not feed.readers and tail.feeds.get(session_id) is feed:
                del tail.feeds[session_id]


@contextlib.contextmanager
def watch_sessions(wake: Callable[[], None]) -> Iterator[ListReader]:
    """A reader of the ids of sessions that change."""
    with _tail() as tail, tail.listener(tail.sessions, wake) as reader:
        yield reader


@contextlib.contextmanager
def watch_approvals(wake: Callable[[], None]) -> Iterator[tuple[ListReader, ApprovalChanges]]:
    """A reader of the ids of interrupts that change, and the count of those that are pending."""
    with _tail() as tail, tail.listener(tail.approvals, wake) as reader:
        yield reader, tail.approvals


class Tail:
    def __init__(self) -> None:
        self.feeds: dict[str, Feed] = {}
        self.sessions = SessionChanges()
        self.approvals = ApprovalChanges()
        self.users = 0
        # Its own thread, for a connection of its own: data_version is relative to a connection.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="dexweb-tail")
        self._alarm = alarm(self._thread)
        self._lists_looked = 0.0
        self._lists_due = False
        self._running = asyncio.create_task(self._run())

    def ring(self) -> None:
        """Look now, at everything."""
        self._alarm.ring()

    @contextlib.contextmanager
    def listener(
        self, changes: SessionChanges | ApprovalChanges, wake: Callable[[], None]
    ) -> Iterator[ListReader]:
        reader = ListReader(wake, changes.recent())
        changes.readers.add(reader)
        self.ring()
        try:
            yield reader
        finally:
            changes.readers.discard(reader)
            if not changes.readers:
                changes.forget()  # nobody keeps it up to date from here on

    def stop(self) -> None:
        """Without waiting, so that it can be called while a socket is being cancelled."""
        self._running.cancel()
        self._alarm.stop()
        self._thread.submit(_close)
        self._thread.shutdown(wait=False)

    async def _run(self) -> None:
        while True:
            try:
                changed = await self._alarm.wait(LISTS_EVERY if self._lists_due else LOOK_ANYWAY)
                await self._look_at_sessions(changed)
                await self._look_at_lists()
            except Exception:
                logger.exception("The event tail could not read; it tries again")
                await self._in_thread(_close)
                await asyncio.sleep(1)
                self.ring()

    async def _look_at_sessions(self, changed: set[str] | None) -> None:
        cursors = {
            session_id: feed.cursor
            for session_id, feed in self.feeds.items()
            if (changed is None or session_id in changed) and feed.wanted()
        }
        for _ in range(BATCHES_A_LOOK):
            if not cursors:
                return
            news = await self._in_thread(_read_news, cursors)
            for session_id, (items, _) in news.items():
                self._hand_over(session_id, cursors[session_id], items)
            # Sockets get a turn to send before the next batch of a burst.
            await asyncio.sleep(0)
            cursors = {
                session_id: items[-1].seq
                for session_id, (items, more) in news.items()
                if more and session_id in self.feeds and self.feeds[session_id].wanted()
            }
        # A session that never stops must not keep the others waiting.
        self.ring()

    def _hand_over(self, session_id: str, cursor: int, items: list[Item]) -> None:
        feed = self.feeds.get(session_id)
        # Somebody may have left and come again meanwhile, with a newer cursor.
        if feed is None or feed.cursor != cursor:
            return
        if items:
            feed.add(items)
        else:
            feed.end()

    async def _look_at_lists(self) -> None:
        watched = [changes for changes in (self.sessions, self.approvals) if changes.readers]
        now = asyncio.get_running_loop().time()
        self._lists_due = bool(watched) and now - self._lists_looked < LISTS_EVERY
        if not watched or self._lists_due:
            return
        self._lists_looked = now
        for changes in watched:
            changes.apply(await self._in_thread(changes.look))

    async def _in_thread(self, read: Callable[..., T], *args: Any) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, partial(_reading, read, *args))


@contextlib.contextmanager
def _tail() -> Iterator[Tail]:
    loop = asyncio.get_running_loop()
    tail = _tails.get(loop)
    if tail is None:
        tail = _tails[loop] = Tail()
    tail.users += 1
    try:
        yield tail
    finally:
        tail.users -= 1
        if not tail.users:
            del _tails[loop]
            tail.stop()


def _reading(read: Callable[..., T], *args: Any) -> T:
    try:
        return read(*args)
    finally:
        # SQLite's stays, since its version is what we compare; a pooled one goes back.
        if connection.vendor != "sqlite":
            connection.close()


def _close() -> None:
    # Looked up here, in the thread that it belongs to.
    with contextlib.suppress(DatabaseError):
        connection.close()


class _News(NamedTuple):
    items: list[Item]
    more: bool


def _read_news(cursors: dict[str, int]) -> dict[str, _News]:
    """What is new in each session that has news; no items for one that is gone."""
    newest = dict(Session.objects.filter(id__in=cursors).values_list("id", "last_seq"))
    news = {session_id: _News([], False) for session_id in cursors.keys() - newest.keys()}
    for session_id, last_seq in newest.items():
        cursor = cursors[session_id]
        if last_seq > cursor:
            items = items_up_to(session_id, cursor, last_seq, BATCH_EVENTS, BATCH_BYTES)
            news[session_id] = _News(items, items[-1].seq < last_seq)
    return news
