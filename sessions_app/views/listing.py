"""The list of sessions."""

from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from sessions_app import search

CHIPS = (
    ("Needs me", {"needs_me": "1"}),
    ("Waiting", {"waiting": "1"}),
    ("Running", {"status": "running"}),
    ("Unknown outcome", {"unknown": "1"}),
    ("Turn failed", {"turn_failed": "1"}),
    ("Mine", {"mine": "1"}),
)


@require_safe
@permission_required("sessions_app.view_session", raise_exception=True)
def session_list(request: HttpRequest) -> HttpResponse:
    """The page; with ``?rows=id,id`` only those lines, under the filters if ``matching=1``."""
    filters = search.SessionFilters.read(request.GET.dict())
    if "rows" in request.GET:
        under = filters if request.GET.get("matching") == "1" else None
        rows = search.rows_by_id(request.GET["rows"], under, request.user)
        return render(request, "sessions/_rows.html", {"sessions": rows})
    page = search.page_of_sessions(filters, request.user, request.GET.get("cursor", ""))
    context = {
        "page": page,
        "sessions": page.rows,
        "filters": filters,
        "chips": _chips(filters),
        "statuses": search.STATUS_WORDS.items(),
        "phases": search.PHASE_WORDS.items(),
        "agents": search.agent_names(),
        "address": filters.query(),
        "next": filters.query(cursor=page.next) if page.next else "",
        "previous": filters.query(cursor=page.previous) if page.previous else "",
    }
    return render(request, "sessions/list.html", context)


def _chips(filters: search.SessionFilters) -> list[dict[str, object]]:
    """Ready-made filters: a chip that is on leads back to the list without it."""
    chips = []
    for words, change in CHIPS:
        (name, value), *_ = change.items()
        on = name in filters.flags or getattr(filters, name, "") == value
        query = filters.query(**{name: "" if on else value})
        chips.append({"words": words, "on": on, "query": query})
    return chips
