"""Arguments as a person reads them: one line a value, nested ones indented, every digit kept."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from approvals_app.deception import suspicious

DEEPEST = 8
ROWS_AT_MOST = 1500
#: A longer value is folded: it says its size, and nobody approves before it was unfolded.
FOLD = 600


@dataclass(frozen=True)
class ArgumentRow:
    """One value. ``kind``: text, number, word (true, false, null), list, object, or json for a
    part that is shown as its JSON text. ``text`` is what stands there; of a list, its size."""

    depth: int
    name: str
    kind: str
    text: str

    @property
    def odd(self) -> bool:
        return suspicious(self.name) or (self.kind in ("text", "json") and suspicious(self.text))

    @property
    def long(self) -> bool:
        return len(self.text) > FOLD

    @property
    def size(self) -> int:
        return len(self.text)

    @property
    def start(self) -> str:
        """What a folded value shows: its first line, at most 80 characters."""
        return self.text[:80].splitlines()[0] if self.text.strip() else ""


class Number(str):
    """A number as it is written, so that none is rounded."""


def argument_rows(text: str) -> list[ArgumentRow]:
    """The rows of ``text``, JSON as it will be sent; what cannot be drawn so is one row of JSON."""
    try:
        value = parse_exact(text)
        rows = []
        for row in _rows_of(value, 0):
            rows.append(row)
            if len(rows) > ROWS_AT_MOST:
                raise ValueError("too many rows")
    except (ValueError, RecursionError):
        return [ArgumentRow(0, "", "json", text)]
    return rows


def parse_exact(text: str) -> Any:
    """``text``, JSON, with each number as it is written."""
    return json.loads(text or "{}", parse_int=Number, parse_float=Number, parse_constant=Number)


def _rows_of(value: Any, depth: int) -> Iterator[ArgumentRow]:
    pairs = value.items() if isinstance(value, dict) else [("", value)]
    for name, part in pairs:
        yield from _rows(name, part, depth)


def _rows(name: str, value: Any, depth: int) -> Iterator[ArgumentRow]:
    if isinstance(value, dict | list) and value:
        if depth >= DEEPEST:
            yield ArgumentRow(depth, name, "json", dump(value))
            return
        inner = value.items() if isinstance(value, dict) else _numbered(value)
        yield ArgumentRow(
            depth, name, "object" if isinstance(value, dict) else "list", _size(value)
        )
        for inner_name, part in inner:
            yield from _rows(inner_name, part, depth + 1)
    else:
        yield ArgumentRow(depth, name, *_plain(value))


def _numbered(values: list[Any]) -> Iterator[tuple[str, Any]]:
    return ((str(place), value) for place, value in enumerate(values, start=1))


def _size(value: dict[str, Any] | list[Any]) -> str:
    noun = "field" if isinstance(value, dict) else "item"
    return f"{len(value)} {noun}{'' if len(value) == 1 else 's'}"


def _plain(value: Any) -> tuple[str, str]:
    match value:
        case Number():
            return "number", str(value)
        case str():
            return "text", value
        case dict():
            return "word", "{}"
        case list():
            return "word", "[]"
        case _:
            return "word", json.dumps(value)


def dump(value: Any) -> str:
    """JSON again, with numbers as they were written."""
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_quoted(k)}: {dump(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(dump, value)) + "]"
    return _quoted(value)


def _quoted(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def pretty(text: str) -> str:
    """JSON on several lines, each number as it is written; ``text`` itself when it is not JSON."""
    try:
        return _indented(parse_exact(text), "\n")
    except (ValueError, RecursionError):
        return text


def _indented(value: Any, line: str) -> str:
    deeper = f"{line}  "
    if isinstance(value, dict) and value:
        parts = [f"{_quoted(k)}: {_indented(v, deeper)}" for k, v in value.items()]
        return "{" + deeper + f",{deeper}".join(parts) + line + "}"
    if isinstance(value, list) and value:
        return "[" + deeper + f",{deeper}".join(_indented(v, deeper) for v in value) + line + "]"
    return dump(value)
