"""The page of spend: budgets as meters, and who spent what today; and raising a session's."""

from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_POST, require_safe

from sessions_app import actions
from sessions_app.spend import summary
from sessions_app.views.detail import act_on


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


@require_POST
@permission_required(actions.RAISE_SPEND, raise_exception=True)
def raise_spend(request: HttpRequest, session_id: str) -> HttpResponse:
    amount = request.POST.get("amount", "")
    return act_on(
        request,
        session_id,
        lambda key: actions.raise_spend(request.user, session_id, amount, key),
        form="raise",
        template="sessions/_notice.html",
        typed={"amount": amount},
    )
