"""The page of spend: budgets as meters, and who spent what today."""

from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from sessions_app.spend import summary


@require_safe
@permission_required("sessions_app.view_session", raise_exception=True)
def spend(request: HttpRequest) -> HttpResponse:
    """How budgets stand; they are edited in the admin site."""
    total, lines = summary.spent_today()
    doubtful, doubt = summary.in_doubt()
    context = {
        "budgets": summary.budget_states(),
        "total": total,
        "lines": lines,
        "unpriced": summary.unpriced(),
        "doubtful": doubtful,
        "doubt": doubt,
    }
    return render(request, "spend/page.html", context)
