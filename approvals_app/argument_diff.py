"""What an edit changed: argument by argument, and word by word inside a text."""

import difflib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from approvals_app.argument_rows import Number, dump, parse_exact
from approvals_app.deception import suspicious

WORD = re.compile(r"\s+|\w+|[^\w\s]")
PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: Longer texts are compared line by line: comparing their words would take too long.
WORDS_AT_MOST = 4000


@dataclass(frozen=True)
class Piece:
    """A run of text that is the same, was removed or was added (``kind``: same, removed, added)."""

    kind: str
    text: str


@dataclass(frozen=True)
class Change:
    """One argument that differs. ``kind``: changed, added or removed; ``pieces`` in reading order."""

    path: str
    kind: str
    pieces: list[Piece]

    @property
    def odd(self) -> bool:
        return suspicious(self.path) or any(suspicious(piece.text) for piece in self.pieces)


def changes(original: str, edited: str) -> list[Change]:
    """How ``edited`` differs from ``original``, both JSON text, in the order of the arguments."""
    before, after = parse_exact(original), parse_exact(edited)
    return list(_changes(before, after, ""))


def _changes(before: Any, after: Any, path: str) -> Iterator[Change]:
    if isinstance(before, dict) and isinstance(after, dict):
        for name in [*before, *(name for name in after if name not in before)]:
            yield from _entry(before, after, name, _named(path, name))
    elif isinstance(before, list) and isinstance(after, list):
        first, second = dict(enumerate(before)), dict(enumerate(after))
        for place in range(max(len(before), len(after))):
            yield from _entry(first, second, place, f"{path}[{place + 1}]")
    elif _differ(before, after):
        yield Change(path, "changed", list(_pieces(before, after)))


def _entry(before: Any, after: Any, name: Any, path: str) -> Iterator[Change]:
    if name not in after:
        yield Change(path, "removed", [Piece("removed", _text(before[name]))])
    elif name not in before:
        yield Change(path, "added", [Piece("added", _text(after[name]))])
    else:
        yield from _changes(before[name], after[name], path)


def _named(path: str, name: str) -> str:
    plain = name if PLAIN_NAME.fullmatch(name) else json.dumps(name, ensure_ascii=False)
    return f"{path}.{plain}" if path else plain


def _differ(before: Any, after: Any) -> bool:
    return type(before) is not type(after) or before != after


def _pieces(before: Any, after: Any) -> Iterator[Piece]:
    both_text = type(before) is str and type(after) is str
    if not both_text:
        yield Piece("removed", _text(before))
        yield Piece("added", _text(after))
        return
    yield from words(before, after)


def words(before: str, after: str) -> Iterator[Piece]:
    """The two texts as one, word by word; whole lines where they are very long."""
    first, second = WORD.findall(before), WORD.findall(after)
    if len(first) + len(second) > WORDS_AT_MOST:
        first, second = before.splitlines(keepends=True), after.splitlines(keepends=True)
    matcher = difflib.SequenceMatcher(None, first, second, autojunk=False)
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal":
            yield Piece("same", "".join(first[a:b]))
            continue
        if b > a:
            yield Piece("removed", "".join(first[a:b]))
        if d > c:
            yield Piece("added", "".join(second[c:d]))


def _text(value: Any) -> str:
    """As JSON, so that the text "12" and the number 12 do not look the same."""
    return str(value) if isinstance(value, Number) else dump(value)
