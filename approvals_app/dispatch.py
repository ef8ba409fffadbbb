"""The last check before a call runs: what made its approval valid must still be so."""

from datetime import datetime, timedelta

from django.contrib.auth import get_user_model
from django.utils import timezone

from approvals_app.models import Decision, Interrupt
from approvals_app.rules import may_decide
from sessions_app.flow.state import Approval, ToolCallPlan
from sessions_app.models import Agent, ToolPolicy

#: From what may be repeated at will to what may not at all.
REPETITION = (ToolPolicy.Effect.READ, ToolPolicy.Effect.IDEMPOTENT, ToolPolicy.Effect.WRITE)


def void_reason(approval: Approval | None, plan: ToolCallPlan, agent: Agent, args_hash: str) -> str:
    """Why the call must not run as it was allowed, in a sentence; "" when it may."""
    if args_hash != plan.args_hash:
        return "The arguments are not the ones that were asked for."
    policy = agent.policy_for(plan.tool)
    if repeats_too_much(plan, agent):
        return f"By now its policy says: {policy.get_effect_display().lower()}."
    if approval is None:
        return "Its policy asks for an approval by now." if policy.needs_approval else ""
    interrupt = Interrupt.objects.select_related("session").get(pk=approval.interrupt_id)
    if interrupt.state != Interrupt.State.APPROVED or interrupt.args_hash != args_hash:
        return "The approval is not for this call."
    return (
        _stricter(policy, approval, interrupt)
        or _led_elsewhere(plan, agent, interrupt)
        or _too_old(approval)
        or _no_longer_allowed(approval, interrupt)
    )


def repeats_too_much(plan: ToolCallPlan, agent: Agent) -> bool:
    """Whether the policy in force allows fewer repetitions than the call was planned with."""
    return REPETITION.index(agent.policy_for(plan.tool).effect) > REPETITION.index(plan.effect)


def _led_elsewhere(plan: ToolCallPlan, agent: Agent, interrupt: Interrupt) -> str:
    """A connection that is gone or disabled has words of its own, said by who would call it."""
    source = agent.source_of(plan.tool)
    if not source or source == interrupt.policy.get("source", source):
        return ""
    name = plan.tool.partition("__")[0]
    return f"The connection {name} was changed since this was asked."


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
    if approval.actor is None and policy.at_deadline != ToolPolicy.AtDeadline.APPROVE:
        return "By now it does not run because nobody answered."
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
        said = interrupt.decisions.filter(actor=actor.id, verdict=Decision.Verdict.APPROVE)
        if not said.exclude(state=Decision.State.REFUSED).exists():
            # The engine alone says so: whoever reaches it could name anybody.
            return f"Here no decision of {actor.name} is recorded."
        person = get_user_model().objects.filter(pk=actor.id).first()
        if person is None or not may_decide(person, interrupt):
            return f"{actor.name} may not decide this any more."
    return ""
