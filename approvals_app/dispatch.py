"""The last check before a call runs: what made its approval valid must still be so."""

from django.contrib.auth import get_user_model

from approvals_app.models import Interrupt
from approvals_app.rules import may_decide
from sessions_app.flow.state import Approval, ToolCallPlan
from sessions_app.models import Agent


def void_reason(approval: Approval | None, plan: ToolCallPlan, agent: Agent, args_hash: str) -> str:
    """Why the call must not run as it was allowed, in a sentence; "" when it may."""
    if args_hash != plan.args_hash:
        return "The arguments are not the ones that were asked for."
    policy = agent.policy_for(plan.tool)
    if approval is None:
        return "Its policy asks for an approval by now." if policy.needs_approval else ""
    if policy.needs_approval and policy.permission != approval.permission:
        return f"Its policy asks for the permission {policy.permission} by now."
    interrupt = Interrupt.objects.get(pk=approval.interrupt_id)
    if interrupt.state != Interrupt.State.APPROVED or interrupt.args_hash != args_hash:
        return "The approval is not for this call."
    if approval.actor is None:
        return ""
    person = get_user_model().objects.filter(pk=approval.actor.id).first()
    if person is None or not may_decide(person, interrupt):
        return f"{approval.actor.name} may not decide this any more."
    return ""
