"""The inbox: what waits for a decision, what was decided, and a few decided together."""

import uuid
from typing import Any

from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_http_methods, require_safe

from approvals_app import audit, batch, inbox
from approvals_app.inbox_filters import (
    DEADLINES,
    HOLDERS,
    QUICK,
    RISKS,
    STATES,
    ApprovalFilters,
)
from approvals_app.models import Interrupt
from approvals_app.panel import risky
from approvals_app.twins import groups_of
from dexweb.engine.errors import DexwebError
from dexweb.pages import render_refusal

may_see = permission_required("approvals_app.view_interrupt", raise_exception=True)


@require_safe
@may_see
def approval_list(request: HttpRequest) -> HttpResponse:
    """The page; with ``?rows=id,id`` only those lines, under the filters if ``matching=1``.

    ``together=1``: they stand together on the page, so their differences are marked.
    """
    filters = ApprovalFilters.read(request.GET.dict())
    viewer = inbox.Viewer.of(request.user)
    if "rows" in request.GET:
        under = filters if request.GET.get("matching") == "1" else None
        rows = inbox.rows_by_id(request.GET["rows"], under, viewer)
        together = request.GET.get("together") == "1"
        groups = groups_of(
            (row, (together and not row.is_question) or row.pk, row.args_start) for row in rows
        )
        return render(request, "approvals/_rows.html", {"groups": groups})
    page = inbox.page_of_approvals(filters, viewer, request.GET.get("cursor", ""))
    agents, tools = inbox.names()
    context = {
        "page": page,
        "interrupts": page.rows,
        "groups": groups_of(_compared(row, filters) for row in page.rows),
        "filters": filters,
        "chips": _chips(filters, viewer),
        "states": STATES.items(),
        "risks": RISKS.items(),
        "deadlines": DEADLINES.items(),
        "holders": HOLDERS.items(),
        "agents": agents,
        "tools": tools,
        "address": filters.query(),
        "next": filters.query(cursor=page.next) if page.next else "",
        "previous": filters.query(cursor=page.previous) if page.previous else "",
        "most": batch.MOST,
    }
    return render(request, "approvals/list.html", context)


def _compared(row: Any, filters: ApprovalFilters) -> tuple[Any, Any, str]:
    """Twins are looked for among what is pending, and for the same people."""
    alone = "" if filters.state == Interrupt.State.PENDING and not row.is_question else row.pk
    return row, (row.tool, row.session.agent_id, row.rank, alone), row.args_start


def _chips(filters: ApprovalFilters, viewer: inbox.Viewer) -> list[dict[str, object]]:
    """States and ready-made filters with their counts; one that is on leads back without it."""
    chips: list[dict[str, object]] = []
    for words, changes in QUICK:
        (name, value), *_ = changes.items()
        only = ApprovalFilters.read(changes)
        on = filters.state == "pending" and getattr(filters, name) == getattr(only, name)
        query = filters.query(**{"state": "pending", name: "" if on else value})
        chips.append({"words": words, "on": on, "query": query, "count": inbox.count(only, viewer)})
    return chips


@require_http_methods(["GET", "HEAD", "POST"])
@may_see
def approval_batch(request: HttpRequest) -> HttpResponse:
    """GET shows every chosen approval in full; POST decides each of them on its own."""
    if request.method != "POST":
        return _review(request, batch.chosen(request.GET.getlist("id")))
    asked = batch.Asked.read(request.POST)
    try:
        with audit.via("page"):
            results = batch.decide_all(request.user, asked)
    except DexwebError as refusal:
        return _review(request, [item.id for item in asked.items], asked, refusal)
    context = {"results": results, "verdict": asked.verdict, "asked": asked}
    context["unfinished"] = any(result.outcome != "delivered" for result in results)
    return render(request, "approvals/batch_results.html", context)


def _review(
    request: HttpRequest,
    ids: list[str],
    asked: batch.Asked | None = None,
    refusal: DexwebError | None = None,
) -> HttpResponse:
    items, excluded = batch.review(request.user, ids)
    context = {
        "items": items,
        "excluded": excluded,
        "risky": risky(item.interrupt for item in items),
        "wants_reason": any(item.wants_reason for item in items),
        "batch_id": asked.batch_id if asked else str(uuid.uuid4()),
        "reason": asked.reason if asked else "",
        "most": batch.MOST,
        "refusal": None,
    }
    if refusal is not None:
        return render_refusal(request, "approvals/batch.html", context, refusal)
    return render(request, "approvals/batch.html", context)
