"""The page of insight, with its charts as plain SVG."""

from dataclasses import dataclass

from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from approvals_app.insight import HABIT, PERIODS, TOO_FAST, Figures
from approvals_app.insight import insight as figures_of
from sessions_app.templatetags.dexweb import span

ROWS_AT_MOST = 25
WIDTH = 600
STATES = ("approved", "rejected", "expired", "other")


@dataclass(frozen=True)
class Bar:
    """One coloured length of a chart, in units of its viewBox."""

    state: str
    x: float
    width: float
    words: str


@dataclass(frozen=True)
class Row:
    """A line of a table, and its bar."""

    figures: Figures
    bars: list[Bar]
    median: str
    p90: str
    words: str


@require_safe
@permission_required("approvals_app.view_interrupt", raise_exception=True)
def insight(request: HttpRequest) -> HttpResponse:
    """How single people decide is for who may read the audit log; anybody sees their own."""
    asked = request.GET.get("days", "")
    days = int(asked) if asked in map(str, PERIODS) else 30
    sees_all = request.user.has_perm("approvals_app.view_auditentry")
    found = figures_of(days, None if sees_all else request.user.pk)
    context = {
        "insight": found,
        "overall": row(found.overall),
        "tools": [row(figures) for figures in found.tools[:ROWS_AT_MOST]],
        "more_tools": max(0, len(found.tools) - ROWS_AT_MOST),
        "people": [row(figures) for figures in found.people[:ROWS_AT_MOST]],
        "more_people": max(0, len(found.people) - ROWS_AT_MOST),
        "hasty": [row(figures) for figures in found.people if figures.hasty],
        "sees_all": sees_all,
        "periods": PERIODS,
        "habit": HABIT,
        "too_fast": f"{TOO_FAST:g}",
        "width": WIDTH,
    }
    return render(request, "insight/page.html", context)


def row(figures: Figures) -> Row:
    return Row(
        figures=figures,
        bars=list(_bars(figures)),
        median=_seconds(figures.median),
        p90=_seconds(figures.p90),
        words=", ".join(
            f"{getattr(figures, state):,} {_word(state)}"
            for state in STATES
            if getattr(figures, state)
        ),
    )


def _bars(figures: Figures) -> list[Bar]:
    """The whole width is all that ended; each state has its share of it, side by side."""
    bars, x = [], 0.0
    for state in STATES:
        count = getattr(figures, state)
        width = WIDTH * figures.share(count)
        if count:
            percent = f"{100 * figures.share(count):.0f} %"
            words = f"{count:,} {_word(state)} ({percent})"
            bars.append(Bar(state, round(x, 2), round(width, 2), words))
        x += width
    return bars


def _word(state: str) -> str:
    return "ended otherwise" if state == "other" else state


def _seconds(value: float | None) -> str:
    """Short times to a tenth: whether somebody took one second or three is what this is about."""
    if value is None:
        return "–"
    return f"{value:.1f} s" if value < 10 else span(round(value))
