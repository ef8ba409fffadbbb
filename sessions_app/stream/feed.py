"""What the tail hands over: feeds that sockets read from, each from its own place."""

from bisect import bisect_right
from collections.abc import Callable, Iterable

from sessions_app.stream.read import PAGE_BYTES, PAGE_EVENTS, Item

KEPT_EVENTS = 2 * PAGE_EVENTS
KEPT_BYTES = PAGE_BYTES
KEPT_IDS = 2000


class Reader:
    """One socket's place in a session's feed. `wake` says that there may be more to read."""

    def __init__(self, feed: "Feed", cursor: int, wake: Callable[[], None]) -> None:
        self.feed = feed
        self.cursor = cursor
        self.wake = wake

    def advance(self, cursor: int) -> None:
        """This socket has sent everything up to ``cursor``."""
        self.cursor = cursor
        if self.feed.paused and cursor >= self.feed.cursor:
            self.feed.paused = False
            self.feed.drained()

    def take(self, events: int, size: int, at_least: int) -> list[Item] | None:
        """What comes next, within these bounds; None when only the database still has it.

        ``at_least`` items are given even if they are larger than ``size``.
        """
        items = self.feed.after(self.cursor)
        if items is None:
            return None
        taken: list[Item] = []
        for item in items[:events]:
            size -= item.size
            if size < 0 and len(taken) >= at_least:
                break
            taken.append(item)
        return taken


class Feed:
    """The newest events of one watched session, rendered once for all of its sockets.

    It keeps what somebody has still to send, up to a bound: who falls further behind reads from
    the database, so that a slow reader costs no memory. In a burst the quickest reader sets the
    pace (`wanted`); ``drained`` is called when it asks for more after a pause.
    """

    def __init__(self, cursor: int, drained: Callable[[], None]) -> None:
        self.cursor = cursor
        self.floor = cursor
        self.gone = False
        self.paused = False
        self.drained = drained
        self.readers: set[Reader] = set()
        self._items: list[Item] = []

    def after(self, cursor: int) -> list[Item] | None:
        """The items above ``cursor``, or None when some of them are not here any more."""
        if cursor < self.floor:
            return None
        return self._items[self._place(cursor) :]

    def wanted(self) -> bool:
        """Whether some reader has taken everything; otherwise reading pauses until one has."""
        self.paused = not any(reader.cursor >= self.cursor for reader in self.readers)
        return not self.paused

    def add(self, items: list[Item]) -> None:
        self._items.extend(items)
        self.cursor = items[-1].seq
        self._forget()
        self._wake()

    def end(self) -> None:
        """The session's row is gone."""
        self.gone = True
        self._wake()

    def _forget(self) -> None:
        """Let go of what every reader has taken, and of the oldest above the bounds."""
        slowest = min((reader.cursor for reader in self.readers), default=self.cursor)
        count = self._place(slowest)
        kept = sum(item.size for item in self._items[count:])
        while len(self._items) - count > KEPT_EVENTS or kept > KEPT_BYTES:
            kept -= self._items[count].size
            count += 1
        if count:
            self.floor = self._items[count - 1].seq
            del self._items[:count]

    def _place(self, cursor: int) -> int:
        return bisect_right(self._items, cursor, key=lambda item: item.seq)

    def _wake(self) -> None:
        for reader in self.readers:
            reader.wake()


class ListReader:
    """The ids that one list page has still to hear of; bounded, since a list can be loaded anew."""

    def __init__(self, wake: Callable[[], None], recent: Iterable[str]) -> None:
        self.ids: set[str] = set()
        self.overflowed = False
        self.wake = wake
        self.add(recent)

    def add(self, ids: Iterable[str]) -> None:
        self.ids.update(ids)
        if len(self.ids) > KEPT_IDS:
            self.ids.clear()
            self.overflowed = True
        self.wake()

    def take(self) -> tuple[list[str], bool]:
        """The ids so far, and whether there were too many to name."""
        ids, overflowed = sorted(self.ids), self.overflowed
        self.ids, self.overflowed = set(), False
        return ids, overflowed
