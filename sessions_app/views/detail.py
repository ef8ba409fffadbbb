"""The page of one session and its fragments. Every fragment is an answer of its own."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from django.contrib.auth.decorators import permission_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBadRequest
from django.shortcuts import get_object_or_404, redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import SimpleLazyObject
from django.views.decorators.http import require_POST, require_safe
from django_htmx.http import trigger_client_event

from approvals_app.panel import panel_context
from approvals_app.questions import question_context
from approvals_app.receipt import Receipt, receipts_of_call
from dexweb.engine.errors import DexwebError
from dexweb.pages import render_refusal, request_id_of
from sessions_app import actions
from sessions_app.detail import events as event_pages
from sessions_app.detail import steps as step_panels
from sessions_app.detail import talk, timeline, turns
from sessions_app.detail.event_words import FAMILIES
from sessions_app.detail.head import first_to_show, head_of
from sessions_app.detail.state import next_settings, state_of_session
from sessions_app.models import Session

TABS = {
    "graph": "Graph",
    "conversation": "Conversation",
    "timeline": "Timeline",
    "events": "Events",
    "state": "State",
}
TAKEN = "session:changed"
APPROVAL = "approvals/_panel.html"
QUESTION = "approvals/_question.html"
STOP_KINDS = {"complete", "cancel", "terminate", "fail"}
reading = permission_required("sessions_app.view_session", raise_exception=True)
operating = permission_required("sessions_app.operate_session", raise_exception=True)


@require_safe
@reading
def session_page(request: HttpRequest, session_id: str) -> HttpResponse:
    """The whole page; with `fragment` only what the open tab shows (main), or the composer."""
    session = open_session(session_id)
    fragment = request.GET.get("fragment")
    if fragment == "main":
        return render(request, "sessions/_main.html", _main(request, session))
    if fragment == "composer":
        return render(request, "sessions/_composer.html", _base(request, session))
    return render(request, "sessions/detail.html", _page(request, session))


@require_safe
@reading
def head(request: HttpRequest, session_id: str) -> HttpResponse:
    session = open_session(session_id)
    return render(request, "sessions/_head.html", _base(request, session))


@require_safe
@reading
def graph(request: HttpRequest, session_id: str) -> HttpResponse:
    """`part=key` draws one part, `before=turn` lists earlier turns; else the newest is drawn."""
    session = open_session(session_id)
    before = _number(request, "before")
    if before is not None:
        folded, earlier = turns.folded_before(session, before)
        strip = turns.GraphStrip(before=folded, earlier=earlier)
    elif "part" in request.GET:
        strip = turns.one(session, request.GET["part"])
        if strip is None:
            raise Http404("This session has no such part.")
    else:
        strip = turns.newest(session)
    return render(request, "sessions/_graph.html", {"session": session, "strip": strip})


@require_safe
@reading
def conversation(request: HttpRequest, session_id: str) -> HttpResponse:
    """`before=turn`: earlier turns; `since=turn`: that one and later; `turn=n`: all of one turn."""
    session = open_session(session_id)
    since, whole = _number(request, "since"), _number(request, "turn")
    if whole is not None:
        shown = talk.whole(session, whole)
    elif since is not None:
        shown = talk.since(session, since, whole="whole" in request.GET)
    else:
        shown = talk.latest(session, before=_number(request, "before"))
    context = {
        "session": session,
        "talk": shown,
        "queue_shown": since is not None,
        "head": head_of(session, request.user, timezone.now()),
    }
    return render(request, "sessions/_conversation.html", context)


@require_safe
@reading
def events(request: HttpRequest, session_id: str) -> HttpResponse:
    """`before`: older ones; `after`: newer; `type`: one family; `seq`: all of one event, raw."""
    session = open_session(session_id)
    seq = _number(request, "seq")
    if seq is not None:
        return _download(event_pages.whole_json(session, seq), f"{session.id}-event-{seq}.json")
    family, after = request.GET.get("type", ""), _number(request, "after")
    if after is not None:
        page = event_pages.newer(session, after, family)
    else:
        page = event_pages.page(session, before=_number(request, "before"), family=family)
    return render(request, "sessions/_events.html", {"session": session, "page": page})


@require_safe
@reading
def step(request: HttpRequest, session_id: str, step_id: str) -> HttpResponse:
    """The panel at the side for one Step; for an approval, what is to be decided or was."""
    session = open_session(session_id)
    base = _base(request, session)
    side = _side(request, session, step_id)
    if side["panel"] is None:
        return render(request, "sessions/_side.html", base | side, status=404)
    return render(request, "sessions/_side.html", base | side)


@require_safe
@reading
def step_raw(request: HttpRequest, session_id: str, step_id: str) -> HttpResponse:
    """One value of a Step in full: `what` is args, result, words, text, reasoning or response."""
    session = open_session(session_id)
    what = request.GET.get("what", "")
    return _download(step_panels.raw(session, step_id, what), f"{step_id}-{what}.txt")


@require_POST
@operating
def send_message(request: HttpRequest, session_id: str) -> HttpResponse:
    text = request.POST.get("text", "")
    return act_on(
        request,
        session_id,
        lambda key: actions.send_message(request.user, session_id, text, key),
        form="composer",
        template="sessions/_composer.html",
        typed={"text": text},
    )


@require_POST
@operating
def cancel_turn(request: HttpRequest, session_id: str) -> HttpResponse:
    reason = request.POST.get("reason", "")
    return act_on(
        request,
        session_id,
        lambda key: actions.cancel_turn(request.user, session_id, reason, key),
        form="cancel",
        template="sessions/_notice.html",
        typed={},
    )


@require_POST
@operating
def skip(request: HttpRequest, session_id: str, step_id: str) -> HttpResponse:
    """Go on now instead of when this timer fires."""
    return act_on(
        request,
        session_id,
        lambda key: actions.skip_wait(request.user, session_id, step_id, key),
        form="skip",
        template="sessions/_notice.html",
        typed={},
    )


@require_POST
@operating
def stop(request: HttpRequest, session_id: str) -> HttpResponse:
    kind, reason = request.POST.get("kind", ""), request.POST.get("reason", "")
    if kind not in STOP_KINDS:
        return HttpResponseBadRequest("Say how the session is to be stopped.")
    return act_on(
        request,
        session_id,
        lambda key: actions.stop(request.user, session_id, kind, reason, key),
        form="stop",
        template="sessions/_stop_form.html",
        typed={"kind": kind, "reason": reason},
    )


def act_on(
    request: HttpRequest,
    session_id: str,
    act: Callable[[str], Any],
    *,
    form: str,
    template: str,
    typed: dict[str, Any],
    told: dict[str, Any] | None = None,
) -> HttpResponse:
    """Do it, and answer with the form anew; a refusal keeps what was ``typed`` and the request's id.

    ``told`` is what the answer says besides when it was done.
    """
    key = request_id_of(request)
    try:
        act(key)
    except DexwebError as refusal:
        filled = {"refused": form, "refusal": refusal, "request_id": key, **typed}
        return _refused(request, session_id, template, filled, refusal)
    if not request.htmx:  # type: ignore[attr-defined]
        return redirect(f"{reverse('session', args=[session_id])}?tab=conversation")
    session = open_session(session_id)
    answer = render(request, template, _base(request, session) | {"done": form, **(told or {})})
    trigger_client_event(answer, TAKEN, {"form": form})
    return trigger_client_event(answer, "draft:taken", {"value": f"{form}:{session.id}"})


def _refused(
    request: HttpRequest,
    session_id: str,
    template: str,
    filled: dict[str, Any],
    refusal: DexwebError,
) -> HttpResponse:
    session = open_session(session_id)
    if request.htmx:  # type: ignore[attr-defined]
        return render_refusal(request, template, _base(request, session) | filled, refusal)
    return render_refusal(
        request, "sessions/detail.html", _page(request, session) | filled, refusal
    )


def _page(request: HttpRequest, session: Session) -> dict[str, Any]:
    main = _main(request, session)
    side = _side(request, session, first_to_show(session, main["head"].waiting))
    return main | side | {"talk": talk.latest(session)}


def _base(request: HttpRequest, session: Session) -> dict[str, Any]:
    tab = request.GET.get("tab", "graph")
    return {
        "session": session,
        "head": head_of(session, request.user, timezone.now()),
        "tabs": TABS,
        "tab": tab if tab in TABS else "graph",
        "dialog": request.GET.get("dialog", ""),
        "next": SimpleLazyObject(partial(next_settings, session)),
    }


def _main(request: HttpRequest, session: Session) -> dict[str, Any]:
    """What the open tab shows, and no other."""
    base = _base(request, session)
    if base["tab"] == "graph":
        return base | {"strip": turns.newest(session), "state_rules": turns.STATE_RULES}
    if base["tab"] == "timeline":
        before = _number(request, "before")
        return base | {"timeline": timeline.page(session, timezone.now(), before=before)}
    if base["tab"] == "events":
        family = request.GET.get("type", "")
        before = _number(request, "before")
        page = event_pages.page(session, before=before, family=family)
        return base | {"page": page, "families": FAMILIES, "before": before}
    if base["tab"] == "state":
        return base | {"state": state_of_session(session)}
    return base


def _side(request: HttpRequest, session: Session, step_id: str) -> dict[str, Any]:
    panel = step_panels.panel(session, step_id, timezone.now()) if step_id else None
    if panel is None:
        return {"panel": panel}
    if panel.interrupt is None:
        return {"panel": panel, "receipts": _receipts(request, session, panel)}
    if panel.interrupt.is_question:
        context = question_context(request.user, panel.interrupt)
        return {"panel": panel, "approval": render_to_string(QUESTION, context, request)}
    if not request.user.has_perm("approvals_app.view_interrupt"):
        return {"panel": replace(panel, interrupt=None)}
    # Drawn apart, since a form of this page and the approval's each speak of their own refusal.
    context = panel_context(request.user, panel.interrupt)
    return {"panel": panel, "approval": render_to_string(APPROVAL, context, request)}


def _receipts(request: HttpRequest, session: Session, panel: Any) -> list[Receipt]:
    """What was asked and approved for the call that this Step makes."""
    if panel.call is None or not request.user.has_perm("approvals_app.view_interrupt"):
        return []
    return receipts_of_call(session.pk, panel.call.call_id)


def open_session(session_id: str) -> Session:
    return get_object_or_404(Session.objects.for_list(), pk=session_id)


def _number(request: HttpRequest, name: str) -> int | None:
    """A number from the address; anything else counts as absent."""
    value = request.GET.get(name, "")
    return int(value) if value.isascii() and value.isdigit() and len(value) <= 15 else None


def _download(text: str | None, name: str) -> HttpResponse:
    if text is None:
        raise Http404("This was never recorded, or is no longer kept.")
    answer = HttpResponse(text, content_type="text/plain; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{"".join(map(_safe, name))}"'
    answer["X-Content-Type-Options"] = "nosniff"
    return answer


def _safe(char: str) -> str:
    return char if char.isascii() and (char.isalnum() or char in "-_.") else "_"
