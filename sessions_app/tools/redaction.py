"""Takes secrets out of text that leaves this process: by value, since a pattern knows only some of
them.
"""

from collections.abc import Iterable, Mapping
from typing import Any

HIDDEN = "[hidden]"

#: A shorter secret than this turns up inside ordinary words, and hiding it would make text
#: unreadable.
SHORTEST = 8


def redact(text: str, secrets: str | Iterable[str]) -> str:
    """`text` with every secret of `SHORTEST` characters or more replaced by `[hidden]`."""
    values = (secrets,) if isinstance(secrets, str) else secrets
    for secret in sorted(values, key=len, reverse=True):
        if len(secret) >= SHORTEST:
            text = text.replace(secret, HIDDEN)
    return text


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
