"""Agents: the list, and the Flow of one as a drawing."""

from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from sessions_app.graph.agent import agent_part
from sessions_app.graph.service import part_view
from sessions_app.models import Agent

reading = permission_required("sessions_app.view_session", raise_exception=True)


@require_safe
@reading
def agent_list(request: HttpRequest) -> HttpResponse:
    """Agents and, for each, the policies of its tools: the last one is for tools no other names."""
    agents = Agent.objects.prefetch_related("connections__tools", "tools").order_by(
        "-enabled", "name"
    )
    policies = [(agent, agent.policies_shown()) for agent in agents]
    return render(request, "agents/list.html", {"agents": policies})


@require_safe
@reading
def agent_graph(request: HttpRequest, name: str) -> HttpResponse:
    """What a turn of this agent can go through; drawn from its definition alone."""
    agents = Agent.objects.prefetch_related("connections__tools", "tools")
    agent = get_object_or_404(agents, name=name)
    context = {
        "agent": agent,
        "policies": agent.policies_shown(),
        "view": part_view(agent_part(agent)),
    }
    return render(request, "agents/graph.html", context)
