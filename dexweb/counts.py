"""Counting in the cache."""

from django.core.cache import cache


def count(key: str, seconds: float) -> int:
    """Add one to what is counted under ``key`` since ``seconds``; returns the count, in one step."""
    cache.add(key, 0, timeout=seconds)
    try:
        return int(cache.incr(key))
    except ValueError:
        # Over, or pushed out of a full cache, between the two lines: this one begins the count anew.
        return 1
