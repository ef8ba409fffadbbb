"""How much of what was sent to a client it has not yet acknowledged."""

from collections import deque

from sessions_app.stream.read import PAGE_BYTES, PAGE_EVENTS, Item


class Window:
    """At most 512 events or 1 MiB are on their way to a client at a time."""

    def __init__(self, events: int = PAGE_EVENTS, size: int = PAGE_BYTES) -> None:
        self._most = (events, size)
        self._sent: deque[tuple[int, int]] = deque()  # numbers and sizes
        self._size = 0

    @property
    def empty(self) -> bool:
        return not self._sent

    @property
    def room(self) -> tuple[int, int]:
        """Events and bytes that may be sent now."""
        events, size = self._most
        return max(0, events - len(self._sent)), max(0, size - self._size)

    @property
    def roomy(self) -> bool:
        """Half of it is free: worth a read from the database."""
        return all(free >= most // 2 for free, most in zip(self.room, self._most, strict=True))

    def sent(self, items: list[Item]) -> None:
        """Texts are not kept: a slow reader is to hold no memory."""
        for item in items:
            self._sent.append((item.seq, item.size))
            self._size += item.size

    def acknowledged(self, seq: int) -> None:
        while self._sent and self._sent[0][0] <= seq:
            self._size -= self._sent.popleft()[1]

    def clear(self) -> None:
        self._sent.clear()
        self._size = 0
