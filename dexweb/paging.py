"""Pages of a list by key, as people read them: an unreadable cursor is simply the beginning."""

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from django.core.exceptions import FieldDoesNotExist, ValidationError
from django.db.models import Model, Q, QuerySet

Row = TypeVar("Row", bound=Model)
Order = Sequence[str]

LIMIT = 50
LIMIT_AT_MOST = 200


@dataclass(frozen=True)
class Page(Generic[Row]):
    """`rows` in the list's order; `next` and `previous` are cursors, "" at an end."""

    rows: list[Row]
    next: str
    previous: str
    beginning: bool


def read_limit(text: str, default: int = LIMIT) -> int:
    """A page size from 1 to `LIMIT_AT_MOST`; anything else is the default."""
    if not (text.isascii() and text.isdigit() and len(text) < 6):
        return default
    return min(max(int(text), 1), LIMIT_AT_MOST)


def keyset_page(rows: "QuerySet[Row]", order: Order, cursor: str, limit: int) -> "Page[Row]":
    """The page at ``cursor``. ``order``, like ``("-updated_at", "-id")``, ends in a unique one."""
    place = _read(cursor, rows.model, order)
    backward = place is not None and place[0]
    way = [_turned(name) for name in order] if backward else list(order)
    rows = rows.order_by(*way)
    if place is not None:
        rows = rows.filter(_behind(way, place[1]))
    found = list(rows[: limit + 1])
    page, more = found[:limit], len(found) > limit
    if backward:
        page.reverse()
    following = bool(page) and (more or backward)
    preceding = bool(page) and (more if backward else place is not None)
    return Page(
        rows=page,
        next=_spell(False, page[-1], order) if following else "",
        previous=_spell(True, page[0], order) if preceding else "",
        beginning=place is None,
    )


def _turned(name: str) -> str:
    return name[1:] if name.startswith("-") else f"-{name}"


def _behind(order: Order, values: list[Any]) -> Q:
    """The rows that come after the place. Its first bound stands alone too: an index walks that."""
    behind, equal = Q(), {}
    for name, value in zip(order, values, strict=True):
        field = name.lstrip("-")
        behind |= Q(**equal, **{f"{field}__{'lt' if name.startswith('-') else 'gt'}": value})
        equal[field] = value
    first = order[0]
    bound = f"{first.lstrip('-')}__{'lte' if first.startswith('-') else 'gte'}"
    return Q(**{bound: values[0]}) & behind


def _spell(backward: bool, row: Model, order: Order) -> str:
    values = [getattr(row, name.lstrip("-")) for name in order]
    plain = [v.isoformat() if isinstance(v, datetime) else v for v in values]
    text = json.dumps([backward, *plain], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _read(text: str, model: type[Model], order: Order) -> tuple[bool, list[Any]] | None:
    if not text or len(text) > 400:
        return None
    try:
        backward, *values = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        pairs = zip(order, values, strict=True)
        return bool(backward), [_value(model, name.lstrip("-"), value) for name, value in pairs]
    except (ValueError, TypeError, OverflowError, ValidationError, RecursionError):
        return None


def _value(model: type[Model], name: str, value: Any) -> Any:
    """``value`` as the field takes it; an annotation, which is no field, is a small number."""
    try:
        field = model._meta.get_field(name)
    except FieldDoesNotExist:
        return min(int(value), 9)
    number = isinstance(value, int) and not isinstance(value, bool)
    if not number and (not isinstance(value, str) or "\0" in value):
        raise ValueError("not a place in this list")
    place = field.to_python(value)
    if isinstance(place, datetime) and place.tzinfo is None:
        raise ValueError("a place in time has a zone")
    # In UTC as the database has it: a moment at an end of the calendar may have no place there.
    return place.astimezone(UTC) if isinstance(place, datetime) else place
