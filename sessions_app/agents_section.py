"""One part of the agents' file, read by the kinds of value it may hold; faults name their place."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Any

from sessions_app.tools.durations import parse_duration


class Section:
    """A mapping of the file at ``path``. What is wrong with it goes to ``errors``."""

    def __init__(
        self,
        value: Any,
        path: str,
        errors: list[str],
        known: tuple[str, ...],
        handled: tuple[str, ...] = (),
    ) -> None:
        self.path, self.errors = path, errors
        self.values: dict[str, Any] = {}
        if value is None and not path:
            self.error("", "the file is empty; it needs agents, connections or credentials")
        elif not isinstance(value, dict):
            self.error("", "write names and values here, like {name: value}")
        else:
            self.values = value
        for name in self.values:
            if name not in known and name not in handled:
                self.error(str(name), f"is not known here; {_near(str(name), known)}")

    def at(self, name: str) -> str:
        return f"{self.path}.{name}".strip(".")

    def error(self, name: str, words: str) -> None:
        self.errors.append(f"{self.at(name) or 'file'}: {words}")

    def parts(
        self, name: str, known: tuple[str, ...], handled: tuple[str, ...] = ()
    ) -> Iterator[tuple[str, Section]]:
        """The named sections below ``name``."""
        below = self.values.get(name)
        if below is None:
            return
        if not isinstance(below, dict):
            self.error(name, "write names and values here, like {name: {…}}")
            return
        for key, value in below.items():
            path = f"{self.at(name)}.{key}"
            if not isinstance(key, str):
                self.errors.append(f"{path}: a name is a text; put it in quotes")
                continue
            yield key, Section(value, path, self.errors, known, handled)

    def part(self, name: str, known: tuple[str, ...]) -> Section:
        """The one section below ``name``; an empty one when there is none."""
        return Section(self.values.get(name, {}), self.at(name), self.errors, known)

    def text(self, name: str, default: str = "", required: bool = False) -> str:
        value = self.values.get(name)
        if value is None:
            if required:
                self.error(name, "is missing")
            return default
        if not isinstance(value, str):
            self.error(name, "must be a text; put it in quotes")
            return default
        return value

    def flag(self, name: str) -> bool | None:
        value = self.values.get(name)
        if value is not None and not isinstance(value, bool):
            self.error(name, "must be true or false")
            return None
        return value

    def number(self, name: str, default: int) -> int:
        value = self.values.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int):
            self.error(name, "must be a whole number")
            return default
        return value

    def number_or_none(self, name: str) -> int | None:
        return None if self.values.get(name) is None else self.number(name, 1)

    def amount(self, name: str) -> Decimal | None:
        """Money, from 0, to a millionth; None where there is none."""
        value = self.values.get(name)
        if value is None:
            return None
        try:
            found = Decimal(str(value))
            if isinstance(value, bool) or not 0 <= found < 10**8:
                raise ValueError
            return found.quantize(Decimal("0.000001"))
        except (ArithmeticError, ValueError):
            self.error(name, "must be an amount in US dollars, like 5 or 0.50")
            return None

    def items(self, name: str) -> list[Any]:
        """As JSON would keep it; what may stand in it is judged by whoever keeps it."""
        value = self.values.get(name, [])
        if not isinstance(value, list):
            self.error(name, "must be a list")
            return []
        return value

    def choice(self, name: str, allowed: tuple[str, ...], default: str = "") -> str:
        """One of ``allowed``; without a default it must be there."""
        value = self.values.get(name)
        if value is None and default:
            return default
        if value not in allowed:
            said = "is missing" if value is None else f"{value!r} means nothing here"
            self.error(name, f"{said}; use {', '.join(allowed)}")
            return default or allowed[0]
        return str(value)

    def names(self, name: str) -> list[str]:
        value = self.values.get(name, [])
        if not (isinstance(value, list) and all(isinstance(item, str) for item in value)):
            self.error(name, "must be a list of texts, like [shop, search]")
            return []
        return value

    def texts(self, name: str) -> dict[str, str]:
        """Names and texts; a number is taken as it is written."""
        value = self.values.get(name, {})
        if not isinstance(value, dict):
            self.error(name, 'must be names and texts, like {SHOP_DB: "shop.sqlite3"}')
            return {}
        for key, item in value.items():
            if isinstance(item, bool) or not isinstance(item, str | int | float):
                self.error(f"{name}.{key}", "must be a text; put it in quotes")
        return {str(key): str(item) for key, item in value.items()}

    def mapping(self, name: str) -> dict[str, Any]:
        """As JSON would keep it, so that a second import finds it equal."""
        value = self.values.get(name, {})
        if not isinstance(value, dict):
            self.error(name, "must be names and values")
            return {}
        try:
            return dict(json.loads(json.dumps(value, allow_nan=False)))
        except (TypeError, ValueError):
            self.error(name, "holds something that JSON has no form for")
            return {}

    def duration(self, name: str, default: timedelta) -> timedelta:
        return self.duration_or_none(name) or default

    def duration_or_none(self, name: str) -> timedelta | None:
        value = self.values.get(name)
        if value is None:
            return None
        try:
            found = parse_duration(value)
        except ValueError as error:
            self.error(name, str(error))
            return None
        if found < timedelta(seconds=1):
            self.error(name, "must be at least 1s")
            return None
        return found


def _near(name: str, known: tuple[str, ...]) -> str:
    near = difflib.get_close_matches(name, known, 1)
    return f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
