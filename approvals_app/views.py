"""The page of one approval. Only a POST to `decide` decides anything."""

from collections.abc import Callable
from typing import Any

from django.contrib.auth.decorators import permission_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe
from django_htmx.http import trigger_client_event

from approvals_app import audit, decisions, edit_form, holds, inbox
from approvals_app.forms import DecisionForm, EditForm, ExtendForm, HoldForm, IncompleteDecision
from approvals_app.models import Interrupt
from approvals_app.panel import Typed, panel_context
from approvals_app.questions import question_context
from dexweb.engine.errors import DexwebError
from dexweb.pages import render_refusal

may_see = permission_required("approvals_app.view_interrupt", raise_exception=True)


@require_safe
@may_see
def approval_page(request: HttpRequest, interrupt_id: str) -> HttpResponse:
    interrupt = _find(interrupt_id)
    if interrupt.is_question:
        context = question_context(request.user, interrupt)
        return render(request, "approvals/question.html", context)
    context = panel_context(request.user, interrupt)
    return render(request, "approvals/page.html", context)


@require_safe
@may_see
def approval_panel(request: HttpRequest, interrupt_id: str) -> HttpResponse:
    """The panel alone, for a page that refreshes or embeds it."""
    interrupt = _find(interrupt_id)
    if interrupt.is_question:
        context = question_context(request.user, interrupt)
        return render(request, "approvals/_question.html", context)
    context = panel_context(request.user, interrupt)
    return render(request, "approvals/_panel.html", context)


def acting(view: Callable[[HttpRequest, Interrupt], HttpResponse]) -> Callable[..., HttpResponse]:
    """A POST acts, recorded as done on a page; GET leads to the approval and changes nothing."""

    @require_http_methods(["GET", "HEAD", "POST"])
    @may_see
    def checked(request: HttpRequest, interrupt_id: str) -> HttpResponse:
        if request.method != "POST":
            return redirect("approval", interrupt_id)
        with audit.via("page"):
            return view(request, _find(interrupt_id))

    return checked


@acting
def decide(request: HttpRequest, interrupt: Interrupt) -> HttpResponse:
    """Answers with the panel (htmx) or the page."""
    form = DecisionForm(request.POST)
    try:
        _check(form)
        form.check_shown(interrupt)
        decisions.decide(request.user, interrupt.pk, **form.arguments())
    except DexwebError as refusal:
        fresh = _find(interrupt.pk)
        context = panel_context(request.user, fresh, refusal=refusal, typed=_typed(request, fresh))
        return render_refusal(request, _template(request), context, refusal)
    if not request.htmx:
        return redirect("approval", interrupt.pk)
    context = panel_context(request.user, _find(interrupt.pk), answered=True)
    return render(request, _template(request), context)


@acting
def edit(request: HttpRequest, interrupt: Interrupt) -> HttpResponse:
    """Shows what edited arguments would change, before they can be approved. Decides nothing."""
    form = EditForm(request.POST)
    typed = Typed(
        reason=request.POST.get("reason", ""),
        shown="shown" in request.POST,
        args=request.POST.get("args", ""),
    )
    try:
        _check(form)
        review = edit_form.review(request.user, interrupt, **form.cleaned_data)
    except DexwebError as refusal:
        context = panel_context(request.user, interrupt, refusal=refusal, typed=typed)
        return render_refusal(request, _template(request), context, refusal)
    typed = Typed(typed.reason, shown=typed.shown, args=typed.args, review=review)
    context = panel_context(request.user, interrupt, typed=typed, answered=True)
    return render(request, _template(request), context)


@acting
def hold(request: HttpRequest, interrupt: Interrupt) -> HttpResponse:
    return _keep(request, interrupt, holds.hold)


@acting
def release(request: HttpRequest, interrupt: Interrupt) -> HttpResponse:
    return _keep(request, interrupt, holds.release)


@acting
def take_over(request: HttpRequest, interrupt: Interrupt) -> HttpResponse:
    return _keep(request, interrupt, holds.take_over)


@acting
def extend(request: HttpRequest, interrupt: Interrupt) -> HttpResponse:
    form = ExtendForm(request.POST)

    def move() -> None:
        until = form.cleaned_data["at"]
        holds.extend(request.user, interrupt.pk, until=until, request_id=_key(form))

    return _change(request, interrupt, form, move, "approvals/_extend.html")


def _keep(request: HttpRequest, interrupt: Interrupt, act: Callable[..., None]) -> HttpResponse:
    form = HoldForm(request.POST)

    def change() -> None:
        act(request.user, interrupt.pk, request_id=_key(form))

    return _change(request, interrupt, form, change, "approvals/_hold.html")


def _change(
    request: HttpRequest,
    interrupt: Interrupt,
    form: Any,
    act: Callable[[], None],
    part: str,
) -> HttpResponse:
    """Answers with the part alone (htmx), so that what is typed elsewhere stays, or the page."""
    page = "approvals/question.html" if interrupt.is_question else "approvals/page.html"
    template = part if request.htmx else page
    try:
        _check(form)
        act()
    except DexwebError as refusal:
        context = _context_of(request.user, _find(interrupt.pk), refusal=refusal)
        context["part_refusal"] = refusal
        answer = render_refusal(request, template, context, refusal)
        return trigger_client_event(answer, "panel:stale")
    if not request.htmx:
        return redirect("approval", interrupt.pk)
    answer = render(request, template, _context_of(request.user, _find(interrupt.pk)))
    return trigger_client_event(answer, "panel:stale")


def _context_of(user: Any, interrupt: Interrupt, **shown: Any) -> dict[str, Any]:
    context = question_context if interrupt.is_question else panel_context
    return context(user, interrupt, **shown)


def _check(form: Any) -> None:
    if not form.is_valid():
        raise IncompleteDecision(errors=_errors(form))


def _key(form: Any) -> str:
    return str(form.cleaned_data["request_id"])


def _typed(request: HttpRequest, interrupt: Interrupt) -> Typed:
    """What a refused decision came with; edited arguments that still pass are shown again."""
    sent = request.POST
    typed = Typed(
        reason=sent.get("reason", ""),
        tried=sent.get("verdict", ""),
        shown="shown" in sent,
        args=sent.get("args", ""),
    )
    if not typed.args:
        return typed
    try:
        review = edit_form.review(
            request.user,
            interrupt,
            revision=interrupt.revision,
            args_hash=interrupt.args_hash,
            args=typed.args,
        )
    except DexwebError:
        return typed
    return Typed(typed.reason, typed.tried, typed.shown, typed.args, review)


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
