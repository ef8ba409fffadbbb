"""The audit log, to read and to take away."""

from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from approvals_app import audit
from approvals_app.audit_export import AT_MOST, csv_lines, json_lines
from approvals_app.audit_search import ORDER, AuditFilters
from approvals_app.audit_words import ACTIONS, AREAS, choices, line
from dexweb.paging import LIMIT, keyset_page, read_limit

FORMATS = {
    "csv": (csv_lines, "text/csv; charset=utf-8"),
    "json": (json_lines, "application/json"),
}


@require_safe
@permission_required("approvals_app.view_auditentry", raise_exception=True)
def audit_log(request: HttpRequest) -> HttpResponse:
    filters = AuditFilters.read(request.GET.dict())
    limit = read_limit(request.GET.get("limit", ""))
    page = keyset_page(filters.select(), ORDER, request.GET.get("cursor", ""), limit)
    more = {} if limit == LIMIT else {"limit": str(limit)}
    context = {
        "page": page,
        "lines": [line(entry) for entry in page.rows],
        "filters": filters,
        "areas": choices(),
        "listed": filters.action in ACTIONS or filters.action in AREAS,
        "pruned": 0 if page.next else audit.pruned_through(),
        "export": filters.query(),
        "export_at_most": AT_MOST,
        "next": filters.query(cursor=page.next, **more) if page.next else "",
        "previous": filters.query(cursor=page.previous, **more) if page.previous else "",
    }
    return render(request, "audit/log.html", context)


@require_safe
@permission_required(
    ["approvals_app.view_auditentry", "approvals_app.export_audit"], raise_exception=True
)
def audit_export(request: HttpRequest, kind: str) -> HttpResponseBase:
    """The entries under the filters of the page, as a file; that it was taken is an entry too."""
    filters = AuditFilters.read(request.GET.dict())
    lines, content_type = FORMATS[kind]
    response = StreamingHttpResponse(lines(filters.select()), content_type=content_type)
    name = timezone.now().strftime(f"audit-%Y-%m-%dT%H%M%SZ.{kind}")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["X-Content-Type-Options"] = "nosniff"
    if request.method == "GET":
        audit.record(
            request.user, "audit.exported", "audit", format=kind, filters=filters.as_detail()
        )
    return response
