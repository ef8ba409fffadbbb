"""The list of agents."""

from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from sessions_app.models import Agent, ToolPolicy


@require_safe
@permission_required("sessions_app.view_session", raise_exception=True)
def agent_list(request: HttpRequest) -> HttpResponse:
    """Agents and, for each, the policies of its tools: the last one is for tools no other names."""
    agents = Agent.objects.prefetch_related("connections", "tools").order_by("-enabled", "name")
    policies = [(agent, _policies(agent)) for agent in agents]
    return render(request, "agents/list.html", {"agents": policies})


def _policies(agent: Agent) -> list[ToolPolicy]:
    named = [policy for policy in agent.tools.all() if policy.pattern != "*"]
    return [*named, agent.policy_for("*")]
