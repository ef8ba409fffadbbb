"""JSON as people read it: over several lines, and not one character of a value changed."""

from __future__ import annotations

import re

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"?|[{}\[\],:]|[^\s{}\[\],:"]+')
INDENT = "  "
# Past this depth lines stay at one margin.
DEEPEST = 40


def indented(text: str) -> str:
    """``text`` with line breaks and indents between its JSON tokens, also when its end is cut off.

    The tokens themselves are copied, so a number keeps every digit. Text that does not begin like
    an object or an array is returned as it is.
    """
    if not text.lstrip().startswith(("{", "[")):
        return text
    tokens = _TOKEN.findall(text)
    out: list[str] = []
    depth = 0
    for place, token in enumerate(tokens):
        before = tokens[place - 1] if place else ""
        if token in "}]":
            depth -= 1
            out.append(token if before in ("{", "[") else _line(depth) + token)
        elif before in ("{", "[", ","):
            out.append(_line(depth) + token)
        elif before == ":":
            out.append(" " + token)
        else:
            out.append(token)
        if token in "{[":
            depth += 1
    return "".join(out)


def _line(depth: int) -> str:
    return "\n" + INDENT * min(max(depth, 0), DEEPEST)
