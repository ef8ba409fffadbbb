"""The inbox of approvals, and the page of one. Only a POST to `decide` decides anything."""

from urllib.parse import urlencode

from django.contrib.auth.decorators import permission_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from approvals_app import decisions, inbox
from approvals_app.forms import DecisionForm, IncompleteDecision
from approvals_app.models import Interrupt
from approvals_app.panel import panel_context
from dexweb.engine.errors import DexwebError
from dexweb.pages import render_refusal
from dexweb.paging import LIMIT, read_limit

may_see = permission_required("approvals_app.view_interrupt", raise_exception=True)


@require_safe
@may_see
def approval_list(request: HttpRequest) -> HttpResponse:
    """The page; with ``?rows=id,id`` only those lines, without decided ones if ``matching=1``."""
    asked = request.GET.get("state", "")
    state = asked if asked in inbox.STATES else "pending"
    if "rows" in request.GET:
        wanted = state if request.GET.get("matching") == "1" else "all"
        rows = inbox.rows_by_id(request.GET["rows"], wanted, request.user)
        return render(request, "approvals/_rows.html", {"interrupts": rows})
    limit = read_limit(request.GET.get("limit", ""))
    page = inbox.page_of_approvals(state, request.user, request.GET.get("cursor", ""), limit)
    context = {
        "page": page,
        "interrupts": page.rows,
        "state": state,
        "states": inbox.STATES.items(),
        "address": _query(state, limit, ""),
        "next": _query(state, limit, page.next) if page.next else "",
        "previous": _query(state, limit, page.previous) if page.previous else "",
    }
    return render(request, "approvals/list.html", context)


@require_safe
@may_see
def approval_page(request: HttpRequest, interrupt_id: str) -> HttpResponse:
    context = panel_context(request.user, _find(interrupt_id))
    return render(request, "approvals/page.html", context)


@require_safe
@may_see
def approval_panel(request: HttpRequest, interrupt_id: str) -> HttpResponse:
    """The panel alone, for a page that refreshes or embeds it."""
    context = panel_context(request.user, _find(interrupt_id))
    return render(request, "approvals/_panel.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@may_see
def decide(request: HttpRequest, interrupt_id: str) -> HttpResponse:
    """POST decides, and answers with the panel (htmx) or the page; GET leads to the page."""
    if request.method != "POST":
        return redirect("approval", interrupt_id)
    _find(interrupt_id)
    form = DecisionForm(request.POST)
    try:
        if not form.is_valid():
            raise IncompleteDecision(errors=_errors(form))
        decisions.decide(request.user, interrupt_id, **form.arguments())
    except DexwebError as refusal:
        context = panel_context(
            request.user,
            _find(interrupt_id),
            refusal=refusal,
            reason=request.POST.get("reason", ""),
            tried=request.POST.get("verdict", ""),
        )
        return render_refusal(request, _template(request), context, refusal)
    if not request.htmx:
        return redirect("approval", interrupt_id)
    context = panel_context(request.user, _find(interrupt_id), answered=True)
    return render(request, _template(request), context)


@require_safe
@may_see
def arguments_raw(request: HttpRequest, interrupt_id: str) -> HttpResponse:
    """The arguments, byte for byte what will run, as a file."""
    interrupt = _find(interrupt_id)
    response = HttpResponse(interrupt.args, content_type="application/json; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="arguments-{interrupt.pk}.json"'
    response["X-Content-Type-Options"] = "nosniff"
    return response


def _find(interrupt_id: str) -> Interrupt:
    interrupt = inbox.find(interrupt_id)
    if interrupt is None:
        raise Http404("No such approval")
    return interrupt


def _template(request: HttpRequest) -> str:
    return "approvals/_panel.html" if request.htmx else "approvals/page.html"


def _errors(form: DecisionForm) -> list[str]:
    return [f"{name}: {error}" for name, errors in form.errors.items() for error in errors]


def _query(state: str, limit: int, cursor: str) -> str:
    values = {
        "state": "" if state == "pending" else state,
        "limit": "" if limit == LIMIT else limit,
        "cursor": cursor,
    }
    return urlencode({name: value for name, value in values.items() if value})
