"""Periods as people write them in settings and commands."""

import re
from datetime import timedelta


def whole_days(text: str) -> timedelta:
    """Of a text like ``400d``. Raises ValueError, in words.

    A bare number, which counts seconds in an agent's file, is refused: what is old is lost for good.
    """
    if not re.fullmatch(r"[1-9][0-9]{0,4}d", text):
        raise ValueError(f"Write a number of days, like 400d, not “{text}”.")
    return timedelta(days=int(text[:-1]))
