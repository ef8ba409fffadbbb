"""What people changed in a call's arguments before it ran, in words for the model."""

import json
from typing import Any

from sessions_app import arguments

LONGEST = 300


def edit_words(by: str, original: str, ran: str) -> str:
    """Who changed which arguments, from what to what. Both are JSON text; long values are cut, and
    say so."""
    before, after = arguments.parse(original), arguments.parse(ran)
    names = [*before, *(name for name in after if name not in before)]
    changes = [_change(name, before, after) for name in names if _differs(name, before, after)]
    return (
        f"{by} changed the arguments of this call before approving it, so it did not run as you "
        f"asked: {'; '.join(changes)}."
    )


def _differs(name: str, before: dict[str, Any], after: dict[str, Any]) -> bool:
    if name not in before or name not in after:
        return True
    return _text(before[name]) != _text(after[name])


def _change(name: str, before: dict[str, Any], after: dict[str, Any]) -> str:
    if name not in after:
        return f"{name} was {_short(before[name])} and was left out"
    if name not in before:
        return f"{name} was added as {_short(after[name])}"
    return f"{name} was {_short(before[name])} and ran as {_short(after[name])}"


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _short(value: Any) -> str:
    text = _text(value)
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]}… [cut here: {len(text):,} characters in all]"
