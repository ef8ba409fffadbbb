"""Delivers decisions that were kept while the engine was away."""

import logging
import time
from collections import Counter
from dataclasses import dataclass

from approvals_app.decisions import pending_delivery, redeliver
from approvals_app.models.decisions import UNDELIVERED
from dexweb.engine.errors import DexwebError, EngineStateUnreadable

log = logging.getLogger(__name__)

PAUSES = (4.0, 60.0)
SILENCES = (60.0, 3600.0)


@dataclass
class Wait:
    """Until when something is left alone; each time twice as long, within ``bounds``."""

    bounds: tuple[float, float]
    seconds: float = 0.0
    until: float = 0.0

    def again(self) -> None:
        least, most = self.bounds
        self.seconds = min(max(2 * self.seconds, least), most)
        self.until = time.monotonic() + self.seconds

    @property
    def over(self) -> bool:
        return time.monotonic() >= self.until


@dataclass
class Failure:
    error: DexwebError
    pause: Wait


# Of this process: one that is started again, with the key that was missing, tries at once.
_failures: dict[str, Failure] = {}
_silences: dict[str, Wait] = {}


def sweep() -> int:
    """Try everything that waits for delivery, once. Returns how much there was.

    What no try can mend, a missing key, is tried ever more seldom. Safe beside other workers'
    sweepers, since the Flow takes a request id once.
    """
    waiting = pending_delivery()
    for gone in _failures.keys() - {decision.request_id for decision in waiting}:
        del _failures[gone]
    for decision in waiting:
        before = _failures.get(decision.request_id)
        if before is not None and not before.pause.over:
            continue
        error = redeliver(decision)
        if error is None or decision.state not in UNDELIVERED:
            _failures.pop(decision.request_id, None)
            if error is not None:
                log.info("decision %s was refused: %s", decision.request_id, error.code)
            continue
        pause = before.pause if before else Wait(PAUSES)
        if isinstance(error, EngineStateUnreadable):
            pause.again()
        _failures[decision.request_id] = Failure(error, pause)
    _say()
    return len(waiting)


def _say() -> None:
    """Each cause once, then seldom, until it is over."""
    errors = {failure.error.code: failure.error for failure in _failures.values()}
    counts = Counter(failure.error.code for failure in _failures.values())
    for over in _silences.keys() - errors.keys():
        del _silences[over]
    for code, error in errors.items():
        silence = _silences.setdefault(code, Wait(SILENCES))
        if silence.over:
            silence.again()
            why = getattr(error, "why", "")
            told = f"{error.title} ({code}). {why}".rstrip()
            log.warning("kept decisions not delivered yet: %d. %s", counts[code], told)
