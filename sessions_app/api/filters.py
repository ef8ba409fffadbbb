"""Reads the filters of a list from an address; a wrong value is refused by name."""

import difflib
from collections.abc import Iterable

from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from sessions_app.models import Session
from sessions_app.models.sessions import SessionQuerySet
from sessions_app.search import SessionFilters

_YES = ("1", "true", "yes")
_NO = ("0", "false", "no")


def choice(request: Request, name: str, allowed: Iterable[str]) -> str:
    """``?name=`` when it is one of ``allowed``, "" when it is not given."""
    value = request.query_params.get(name, "")
    words = list(allowed)
    if value and value not in words:
        near = difflib.get_close_matches(value, words, 1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise ValidationError({name: f"Use one of {', '.join(words)}.{hint}"})
    return value


def flag(request: Request, name: str) -> bool | None:
    """``?name=`` as yes or no, None when it is not given."""
    value = request.query_params.get(name, "").lower()
    if value in _YES:
        return True
    if value in _NO:
        return False
    if value:
        raise ValidationError({name: "Use true or false."})
    return None


def text(request: Request, name: str) -> str:
    """``?name=`` as text that a database takes."""
    value = request.query_params.get(name, "").strip()
    if "\0" in value or len(value) > 200:
        raise ValidationError({name: "Use at most 200 characters of plain text."})
    return value


def number(request: Request, name: str, default: int | None = None) -> int | None:
    """``?name=`` as a whole number from 0, ``default`` when it is not given."""
    value = request.query_params.get(name, "")
    if not value:
        return default
    if not (value.isascii() and value.isdigit() and len(value) < 19):
        raise ValidationError({name: "Give a whole number."})
    return int(value)


def filter_sessions(request: Request) -> SessionQuerySet:
    """Sessions under status, phase, agent, waiting and q, found as the pages find them."""
    waiting = flag(request, "waiting")
    filters = SessionFilters(
        q=text(request, "q"),
        status=choice(request, "status", Session.Status.values),
        phase=choice(request, "phase", Session.Phase.values),
        agent=text(request, "agent"),
        flags=frozenset({"waiting"} if waiting else ()),
    )
    rows = filters.select(request.user)
    if waiting is not False:
        return rows
    return rows.filter(waiting=0).exclude(phase=Session.Phase.WAITING_SPEND)
