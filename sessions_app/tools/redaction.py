"""Takes secrets out of text that leaves this process: by value, since a pattern knows only some of
them.
"""

from collections.abc import Iterable

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
