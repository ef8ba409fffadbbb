"""Untrusted text made safe to look at: nothing in it is invisible or turns its neighbours round."""

import re
import unicodedata

ELLIPSIS = "…"
HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp", "Zs"})
# Letters and marks by category, yet drawn as nothing: fillers, the grapheme joiner, blank Braille.
DRAWN_AS_NOTHING = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
_TOKEN = re.compile(r"⟨U\+[0-9A-F]{4,6}⟩|.", re.DOTALL)


def visible(text: str) -> str:
    """The text with every control, bidi, zero-width, odd space or surrogate shown as ⟨U+202E⟩.

    Idempotent, and the identity for ordinary text. What it gives is always legal in XML.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(f"⟨U+{ord(char):04X}⟩" if _is_hidden(char) else char for char in text)


def shorten(text: str, columns: int) -> str:
    """Visible text cut to `columns` with an ellipsis; a wide character takes two columns."""
    if len(text) <= columns and text.isascii() and text.isprintable():
        return text
    room = columns
    kept: list[str] = []
    for token in _TOKEN.findall(visible(text[: columns * 2 + 1])):
        room -= _columns(token)
        if room < 0:
            return _ending_in_ellipsis(kept, columns)
        kept.append(token)
    return "".join(kept)


def _ending_in_ellipsis(tokens: list[str], columns: int) -> str:
    used = sum(map(_columns, tokens))
    while tokens and used > columns - 1:
        used -= _columns(tokens.pop())
    return "".join(tokens) + ELLIPSIS


def _columns(token: str) -> int:
    if len(token) > 1:
        return len(token)
    return 2 if unicodedata.east_asian_width(token) in "WF" else 1


def _is_hidden(char: str) -> bool:
    if char == " ":
        return False
    if char in DRAWN_AS_NOTHING or unicodedata.category(char) in HIDDEN_CATEGORIES:
        return True
    code = ord(char)
    return code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF
