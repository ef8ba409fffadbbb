"""The page of spend: budgets as meters, and who spent what today; and raising a session's."""

from decimal import Decimal

from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_POST, require_safe

from sessions_app import actions
from sessions_app.models import Session
from sessions_app.spend import summary
from sessions_app.spend.words import raised_words
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
    told: dict[str, str] = {}

    def act(key: str) -> None:
        answer = actions.raise_spend(request.user, session_id, amount, key)
        told["raised"] = _raised(session_id, Decimal(amount), Decimal(answer.state))

    return act_on(
        request,
        session_id,
        act,
        form="raise",
        template="sessions/_notice.html",
        typed={"amount": amount},
        told=told,
    )


def _raised(session_id: str, amount: Decimal, total: Decimal) -> str:
    """In words; the row may not yet have the ``total`` that the engine answered."""
    session = Session.objects.get(pk=session_id)
    session.spend_raised = total
    own = summary.limit_of(session)
    return raised_words(amount, own[1] if own else None)
