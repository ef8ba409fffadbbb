"""What other policies would have meant for the calls of the last days. Stores nothing."""

from dataclasses import dataclass
from datetime import timedelta

from django.db.models import Count
from django.utils import timezone

from sessions_app.flow.terms import DELEGATE
from sessions_app.models import Agent, ToolCall, ToolPolicy
from sessions_app.models.agents import most_specific

DAYS = 7
TOOLS_AT_MOST = 500


@dataclass(frozen=True)
class ToolPreview:
    """One tool that was called: how often, and whether it asks by these policies and by the stored."""

    tool: str
    calls: int
    asks: bool
    asks_now: bool


@dataclass(frozen=True)
class Preview:
    """``tools`` are those that were called in the last ``days``, the most called first."""

    days: int
    tools: list[ToolPreview]

    @property
    def asking(self) -> list[ToolPreview]:
        return [tool for tool in self.tools if tool.asks]

    @property
    def times(self) -> int:
        return sum(tool.calls for tool in self.asking)

    @property
    def times_now(self) -> int:
        return sum(tool.calls for tool in self.tools if tool.asks_now)

    @property
    def differing(self) -> list[ToolPreview]:
        return [tool for tool in self.tools if tool.asks != tool.asks_now]


def preview(agent: Agent, policies: list[ToolPolicy]) -> Preview:
    """``policies`` take the place of all that hold for the stored ``agent``."""
    since = timezone.now() - timedelta(days=DAYS)
    called = (
        ToolCall.objects.filter(session__agent=agent, requested_at__gte=since)
        .values_list("tool")
        .annotate(calls=Count("pk"))
        .order_by("-calls", "tool")[:TOOLS_AT_MOST]
    )
    stored = agent.policies()
    return Preview(
        DAYS,
        [
            ToolPreview(tool, calls, _asks(policies, tool), _asks(stored, tool))
            for tool, calls in called
        ],
    )


def _asks(policies: list[ToolPolicy], tool: str) -> bool:
    if tool == DELEGATE:
        return any(policy.pattern == tool and policy.needs_approval for policy in policies)
    policy = most_specific(policies, tool)
    return policy is None or policy.needs_approval
