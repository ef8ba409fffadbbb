"""What the engine's library logs at every try, with a traceback, although its cause is known."""

import logging
import time

from dexweb.engine.errors import EngineStateUnreadable

EVERY = 600.0


class KnownCauses(logging.Filter):
    """Lets such a record through now and then, as one line that says the cause."""

    def __init__(self) -> None:
        super().__init__()
        self._silent_until = 0.0

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if not isinstance(error, EngineStateUnreadable):
            return True
        if time.monotonic() < self._silent_until:
            return False
        self._silent_until = time.monotonic() + EVERY
        record.msg = f"A session stands still ({error.code}). {error.why}"
        record.args = record.exc_info = record.exc_text = None
        return True
