"""Takes secrets out of text that leaves this process: by value, since a pattern knows only some of
them.
"""

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import quote

HIDDEN = "[hidden]"

#: A shorter secret than this turns up inside ordinary words, and hiding it would make text
#: unreadable.
SHORTEST = 8

#: A line of a secret that has several, like a key file, is hidden by itself from this length on.
SHORTEST_LINE = 16


def redact(text: str, secrets: str | Iterable[str]) -> str:
    """`text` with every secret of `SHORTEST` characters or more replaced by `[hidden]`.

    That is also a secret as JSON, Python or an address spells it, and each long line of it.
    """
    values = (secrets,) if isinstance(secrets, str) else secrets
    hidden = {words for secret in values for words in _spellings(secret)}
    for words in sorted(hidden, key=len, reverse=True):
        text = text.replace(words, HIDDEN)
    return text


@lru_cache(maxsize=256)
def _spellings(secret: str) -> frozenset[str]:
    whole = secret.strip()
    if len(whole) < SHORTEST:
        return frozenset()
    lines = [line.strip() for line in whole.splitlines()]
    parts = {secret, whole, *(line for line in lines if len(line) >= SHORTEST_LINE)}
    return frozenset(words for part in parts for words in (part, *_escaped(part)))


def _escaped(part: str) -> Iterable[str]:
    for ascii_only in (True, False):
        # Twice: a log line that holds JSON is often sent as JSON itself.
        once = json.dumps(part, ensure_ascii=ascii_only)[1:-1]
        yield once
        yield json.dumps(once, ensure_ascii=ascii_only)[1:-1]
    yield repr(part)[1:-1]
    yield quote(part, safe="", errors="replace")


def redact_value(value: Any, secrets: str | Iterable[str]) -> Any:
    """The same for every text inside a JSON value, its keys too."""
    secrets = (secrets,) if isinstance(secrets, str) else tuple(secrets)
    if isinstance(value, str):
        return redact(value, secrets)
    if isinstance(value, Mapping):
        return {
            redact_value(key, secrets): redact_value(item, secrets) for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [redact_value(item, secrets) for item in value]
    return value
