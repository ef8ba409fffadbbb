"""Template tags of every page: states, times, money, and text that hides nothing."""

import math
import uuid
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django import template
from django.urls import get_script_prefix
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from approvals_app.deception import segments, suspicious
from sessions_app import state_words
from sessions_app.spend.words import dollars

register = template.Library()

UNITS = (("min", 60, 60), ("h", 3600, 24), ("d", 86400, math.inf))


def _state(words: state_words.StateWords, size: str) -> dict[str, str]:
    return {"hue": words.hue, "words": words.words, "size": size}


@register.inclusion_tag("components/_state.html")
def session_state(session: Any, size: str = "") -> dict[str, str]:
    return _state(state_words.session_words(session), size)


@register.inclusion_tag("components/_state.html")
def step_state(step: Any, size: str = "") -> dict[str, str]:
    return _state(state_words.step_words(step), size)


@register.inclusion_tag("components/_state.html")
def interrupt_state(interrupt: Any, size: str = "") -> dict[str, str]:
    return _state(state_words.interrupt_words(interrupt.state), size)


@register.inclusion_tag("components/_state.html")
def outcome_state(outcome: str, size: str = "") -> dict[str, str]:
    return _state(state_words.outcome_words(outcome), size)


@register.filter
def visible(text: Any) -> SafeString:
    """``text``, escaped, with every character that hides, turns or imitates shown as a mark."""
    return format_html_join("", "{}", ((_segment(s),) for s in segments(str(text or ""))))


def _segment(segment: Any) -> SafeString | str:
    if segment.mark == "":
        return segment.text
    css = "lookalike" if segment.mark == "lookalike" else "char"
    return format_html('<span class="{}" title="{}">{}</span>', css, segment.name, segment.text)


@register.filter
def is_suspicious(text: Any) -> bool:
    return suspicious(str(text or ""))


@register.simple_tag
def server_now() -> str:
    return timezone.now().isoformat(timespec="milliseconds")


@register.simple_tag
def socket_url(*parts: str) -> str:
    """The address of a socket of routing.py, below the path prefix if there is one."""
    return f"{get_script_prefix()}ws/{'/'.join(parts)}"


@register.simple_tag
def root_url() -> str:
    """Where the site begins, for scripts that put addresses together: / or the path prefix."""
    return get_script_prefix()


@register.simple_tag
def new_request_id() -> str:
    return str(uuid.uuid4())


def _moment(at: Any) -> datetime | None:
    moment = parse_datetime(at) if isinstance(at, str) else at
    if isinstance(moment, datetime) and timezone.is_naive(moment):
        return moment.replace(tzinfo=timezone.get_default_timezone())
    return moment


@register.filter
def exact(at: Any) -> str:
    """The moment to the second, its zone named."""
    moment = _moment(at)
    return timezone.localtime(moment).strftime("%Y-%m-%d %H:%M:%S %Z") if moment else ""


@register.filter
def iso(at: datetime) -> str:
    """The moment for scripts."""
    return at.isoformat(timespec="milliseconds")


@register.filter
def ago(at: Any) -> SafeString | str:
    """How long ago (or until), the exact moment and its zone on hover; kept fresh by a script."""
    moment = _moment(at)
    if moment is None:
        return ""
    return format_html(
        '<time datetime="{}" title="{}" data-relative>{}</time>',
        iso(moment),
        exact(moment),
        _relative(timezone.now() - moment),
    )


def _relative(age: timedelta) -> str:
    seconds = age.total_seconds()
    size = abs(seconds)
    if size < 45:
        return "now"
    counts = ((round(size / length), unit, limit) for unit, length, limit in UNITS)
    count, unit, _ = next(found for found in counts if found[0] < found[2])
    return f"{count} {unit} ago" if seconds > 0 else f"in {count} {unit}"


@register.filter
def left(deadline: datetime) -> str:
    """The time until ``deadline`` on a clock: 11:42, 1:02:33, 3 d 4 h (as countdown.js)."""
    seconds = max(0, math.ceil((deadline - timezone.now()).total_seconds()))
    hours, minutes = seconds // 3600, seconds % 3600 // 60
    if hours >= 24:
        return f"{hours // 24} d {hours % 24} h"
    clock = f"{minutes:02}:{seconds % 60:02}" if hours else f"{minutes}:{seconds % 60:02}"
    return f"{hours}:{clock}" if hours else clock


@register.filter
def span(value: Any) -> str:
    """A duration in words: 90 s, 30 min, 1 h 30 min, 3 d. Takes a timedelta or seconds."""
    seconds = value.total_seconds() if isinstance(value, timedelta) else float(value or 0)
    if seconds < 120 and seconds % 60:
        return f"{seconds:g} s"
    minutes = round(seconds / 60)
    days, minutes = divmod(minutes, 24 * 60)
    hours, minutes = divmod(minutes, 60)
    parts = [(days, "d"), (hours, "h"), (minutes, "min")]
    return " ".join(f"{count} {unit}" for count, unit in parts if count) or "0 min"


@register.filter
def money(amount: Any) -> str:
    """US dollars and cents; a third decimal below ten dollars if it is any; a trace is said to be one."""
    value = Decimal(str(amount or 0))
    return "<$0.001" if 0 < value < Decimal("0.001") else dollars(value)


@register.filter
def money_of_limit(amount: Any) -> str:
    """As `money`, but a trace in full: beside a limit that may be one itself."""
    return dollars(Decimal(str(amount or 0)))


@register.filter
def cut(text: Any, size: int) -> str:
    """``text`` up to ``size`` characters, and in words how much was left out."""
    whole = str(text or "")
    return whole if len(whole) <= size else f"{whole[:size]} … and {len(whole) - size:,} more"


@register.filter
def cut_of(start: Any, length: int) -> str:
    """The first 160 characters of a text of ``length`` that begins with ``start``, as `cut` says."""
    shown = str(start or "")[:160]
    left = (length or 0) - len(shown)
    return f"{shown} … and {left:,} more" if left > 0 else shown


@register.filter
def counted(number: Any, noun: str) -> str:
    """``{{ 3|counted:"turn" }}``: 3 turns."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
