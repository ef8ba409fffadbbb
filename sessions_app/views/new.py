"""The form that starts a session."""

from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from dexweb.engine.errors import DexwebError
from dexweb.pages import render_refusal
from sessions_app import actions
from sessions_app.forms import StartSessionForm, new_request_id, startable_agents

TEMPLATE = "sessions/new.html"


@require_http_methods(["GET", "HEAD", "POST"])
@permission_required("sessions_app.operate_session", raise_exception=True)
def session_new(request: HttpRequest) -> HttpResponse:
    agents = list(startable_agents())
    if request.method != "POST":
        chosen = request.GET.get("agent") or (agents[0].name if len(agents) == 1 else "")
        form = StartSessionForm(initial={"agent": chosen, "request_id": new_request_id()})
        return render(request, TEMPLATE, {"form": form, "agents": agents})
    form = StartSessionForm(request.POST)
    context = {"form": form, "agents": agents}
    if not form.is_valid():
        return render(request, TEMPLATE, context, status=400)
    try:
        session = actions.start_session(
            request.user,
            agent=form.cleaned_data["agent"].name,
            message=form.cleaned_data["message"],
            title=form.cleaned_data["title"],
            request_id=str(form.cleaned_data["request_id"]),
        )
    except DexwebError as refusal:
        return render_refusal(request, TEMPLATE, context, refusal)
    return redirect("session", session.id)
