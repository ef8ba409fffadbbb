"""Answering a question, from its own page and from the session's. GET changes nothing."""

from typing import Any

from django.contrib.auth.decorators import permission_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from approvals_app import audit, inbox
from approvals_app.models import Interrupt
from approvals_app.models.interrupts import OPERATE
from approvals_app.questions import answers_in, question_context, questions_of
from dexweb.engine.errors import DexwebError
from dexweb.pages import render_refusal, request_id_of
from sessions_app import actions


@require_http_methods(["GET", "HEAD", "POST"])
@permission_required(OPERATE, raise_exception=True)
def answer(request: HttpRequest, interrupt_id: str) -> HttpResponse:
    """Answers with the panel (htmx) or the page; a refusal keeps all that was typed."""
    if request.method != "POST":
        return redirect("approval", interrupt_id)
    interrupt = _find(interrupt_id)
    try:
        with audit.via("page"):
            actions.answer_question(
                request.user,  # type: ignore[arg-type]
                interrupt.pk,
                revision=_revision(request),
                answers=answers_in(request.POST, questions_of(interrupt)),
                request_id=request_id_of(request),
            )
    except DexwebError as refusal:
        context = question_context(
            request.user, _find(interrupt.pk), refusal=refusal, typed=request.POST
        )
        return render_refusal(request, _template(request), context, refusal)
    if not _htmx(request):
        return redirect("approval", interrupt.pk)
    context = question_context(request.user, _find(interrupt.pk), answered=True)
    return render(request, _template(request), context)


def _find(interrupt_id: str) -> Interrupt:
    interrupt = inbox.find(interrupt_id)
    if interrupt is None or not interrupt.is_question:
        raise Http404("No such question")
    return interrupt


def _template(request: HttpRequest) -> str:
    return "approvals/_question.html" if _htmx(request) else "approvals/question.html"


def _htmx(request: Any) -> bool:
    return bool(request.htmx)


def _revision(request: HttpRequest) -> int:
    """As the form has it; a damaged one names none, which is refused as stale."""
    text = request.POST.get("revision", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
