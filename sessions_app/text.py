"""Text from outside, made fit to be kept: what a database or the engine would refuse is replaced."""

import re

from dexweb.engine.errors import TooLarge

TITLE_LENGTH = 80
_UNKEEPABLE = re.compile("[\x00\ud800-\udfff]")


def keepable(text: str) -> str:
    """``text`` with each NUL and lone surrogate as U+FFFD, the replacement character.

    PostgreSQL stores neither, and neither has a form in UTF-8 or in the engine's payloads; every
    other character stays as it came.
    """
    return _UNKEEPABLE.sub("\ufffd", text)


def check_size(text: str, limit: int) -> None:
    """Refuse what takes more than ``limit`` bytes. Raises `TooLarge`."""
    size = len(text.encode("utf-8", "replace"))
    if size > limit:
        raise TooLarge(size=size, limit=limit)


def title_of(message: str) -> str:
    """A session's title from what it was told first: one line, cut where it is long."""
    line = " ".join(keepable(message).split())
    return line if len(line) <= TITLE_LENGTH else f"{line[: TITLE_LENGTH - 1]}…"
