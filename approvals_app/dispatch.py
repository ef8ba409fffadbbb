"""The last check before a call runs: what made its approval valid must still be so."""

from datetime import datetime, timedelta

from django.contrib.auth import get_user_model
from django.utils import timezone

from approvals_app.models import Interrupt
from approvals_app.rules import may_decide
from sessions_app.flow.state import Approval, ToolCallPlan
from sessions_app.models import Agent, ToolPolicy


def void_reason(approval: Approval | None, plan: ToolCallPlan, agent: Agent, args_hash: str) -> str:
    """Why the call must not run as it was allowed, in a sentence; "" when it may."""
    if args_hash != plan.args_hash:
        return "The arguments are not the ones that were asked for."
    policy = agent.policy_for(plan.tool)
    if approval is None:
        return "Its policy asks for an approval by now." if policy.needs_approval else ""
    interrupt = Interrupt.objects.select_related("session").get(pk=approval.interrupt_id)
    if interrupt.state != Interrupt.State.APPROVED or interrupt.args_hash != args_hash:
        return "The approval is not for this call."
    return (
        _stricter(policy, approval, interrupt)
        or _too_old(approval)
        or _no_longer_allowed(approval, interrupt)
    )


def _stricter(policy: ToolPolicy, approval: Approval, interrupt: Interrupt) -> str:
    if not policy.needs_approval:
        return ""
    asked = interrupt.policy
    escalated_to = {step["permission"] for step in asked.get("escalation", [])}
    if approval.permission not in escalated_to and policy.permission != approval.permission:
        return f"Its policy asks for the permission {policy.permission} by now."
    if policy.approve_n > asked.get("approve_n", 1):
        return f"Its policy asks for {policy.approve_n} approvals by now."
    if policy.four_eyes and not asked.get("four_eyes", False):
        return "Its policy asks for a second pair of eyes by now."
    return ""


def _too_old(approval: Approval) -> str:
    if not approval.validity:
        return ""
    age = timezone.now() - datetime.fromisoformat(approval.decided_at)
    if age <= timedelta(seconds=approval.validity):
        return ""
    return f"It was approved more than {approval.validity:.0f} s ago, longer than it stays good."


def _no_longer_allowed(approval: Approval, interrupt: Interrupt) -> str:
    people = approval.approvers or ([approval.actor] if approval.actor else [])
    for actor in people:
        person = get_user_model().objects.filter(pk=actor.id).first()
        if person is None or not may_decide(person, interrupt):
            return f"{actor.name} may not decide this any more."
    return ""
