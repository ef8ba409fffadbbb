"""Durations as people write them in agents' YAML: `30m`, `2s`, `250ms`, `1h30m`, `1d`."""

import math
import re
from datetime import timedelta

_UNIT_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
_PIECE = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)")
_WHOLE = re.compile(rf"(?:{_PIECE.pattern}\s*)+")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def parse_duration(value: str | int | float | timedelta) -> timedelta:
    """The duration meant by `value`; a bare number counts seconds.

    Raises `ValueError`, in words for the person who wrote it, for anything else: a negative or
    endless number, a unit other than ms, s, m, h, d, a boolean or an empty text.
    """
    if isinstance(value, timedelta):
        if value < timedelta(0):
            raise _not_a_duration(value)
        return value
    if isinstance(value, bool):
        raise _not_a_duration(value)
    if isinstance(value, int | float):
        return _from_seconds(value, value)
    if not isinstance(value, str):
        raise _not_a_duration(value)
    text = value.strip()
    if _NUMBER.fullmatch(text):
        return _from_seconds(float(text), value)
    if not _WHOLE.fullmatch(text):
        raise _not_a_duration(value)
    seconds = sum(float(number) * _UNIT_SECONDS[unit] for number, unit in _PIECE.findall(text))
    return _from_seconds(seconds, value)


def duration_seconds(value: str | int | float | timedelta) -> float:
    """The same in seconds, for sleeping."""
    return parse_duration(value).total_seconds()


def _from_seconds(seconds: float, written: object) -> timedelta:
    if not math.isfinite(seconds) or seconds < 0:
        raise _not_a_duration(written)
    try:
        return timedelta(seconds=seconds)
    except OverflowError:
        raise _not_a_duration(written) from None


def _not_a_duration(written: object) -> ValueError:
    return ValueError(
        f"{written!r} is not a duration; write 250ms, 2s, 30m, 1h, 1d or seconds as a number."
    )
