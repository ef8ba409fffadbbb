"""An event's size is bounded; one that would be larger is cut, and says so."""

import json
from typing import Any

from django.conf import settings

#: A payload's values begin to be cut at this many characters or items, and at half as many until it fits.
FIRST_CUT = 16 * 1024


def fitted(payload: dict[str, Any]) -> dict[str, Any]:
    """``payload``, or what fits of it with ``cut`` set; rows keep the whole."""
    limit = settings.DEXWEB_LIMIT_EVENT
    if _size(payload) <= limit:
        return payload
    room = FIRST_CUT
    while room:
        smaller = {**_cut(payload, room), "cut": True}
        if _size(smaller) <= limit:
            return smaller
        room //= 2
    return {"cut": True}


def _size(payload: dict[str, Any]) -> int:
    return len(json.dumps(payload))


def _cut(value: Any, room: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= room else f"{value[:room]}…"
    if isinstance(value, list):
        return [_cut(item, room) for item in value[:room]]
    if isinstance(value, dict):
        return {name: _cut(value[name], room) for name in list(value)[:room]}
    return value
