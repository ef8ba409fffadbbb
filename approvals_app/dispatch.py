"""The last check before a call runs: what made its approval valid must still be so."""

from datetime import datetime, timedelta

from django.contrib.auth import get_user_model
from django.utils import timezone

from approvals_app.models import Decision, Interrupt
from approvals_app.rules import may_decide
from sessions_app import arguments
from sessions_app.flow.state import Approval, ToolCallPlan
from sessions_app.models import Agent, ToolPolicy

#: From what may be repeated at will to what may not at all.
REPETITION = (ToolPolicy.Effect.READ, ToolPolicy.Effect.IDEMPOTENT, ToolPolicy.Effect.WRITE)


def void_reason(
    approval: Approval | None, plan: ToolCallPlan, agent: Agent, args_hash: str, begun: bool = False
) -> str:
    """Why the call must not run as it was allowed, in a sentence; "" when it may.

    With ``begun`` an earlier attempt has started: an approval stays good until then, not longer.
    """
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
        or ("" if begun else _too_old(approval, policy))
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
    if approval.permission not in _permissions(policy, interrupt):
        return f"Its policy asks for the permission {policy.permission} by now."
    if policy.approve_n > asked.get("approve_n", 1):
        return f"Its policy asks for {policy.approve_n} approvals by now."
    if policy.four_eyes and not asked.get("four_eyes", False):
        return "Its policy asks for a second pair of eyes by now."
    if approval.actor is None and policy.at_deadline != ToolPolicy.AtDeadline.APPROVE:
        return "By now it does not run because nobody answered."
    if interrupt.original_args and not policy.editable:
        return "Its policy allows no edited arguments by now."
    if policy.reason_on_approve and approval.actor is not None and not interrupt.reason:
        return "Its policy asks for a reason by now."
    return ""


def _permissions(policy: ToolPolicy, interrupt: Interrupt) -> set[str]:
    """Those that an approval may stand on by the policy in force, as far as it had escalated."""
    if not interrupt.level:
        return {policy.permission}
    return {step["permission"] for step in policy.escalation}


def _too_old(approval: Approval, policy: ToolPolicy) -> str:
    """The shorter of what was said when it was asked for and what is said now."""
    asked = [timedelta(seconds=approval.validity)] if approval.validity else []
    validity = min([*asked, *([policy.validity] if policy.validity else [])], default=None)
    if validity is None or not approval.decided_at:
        return ""
    age = timezone.now() - datetime.fromisoformat(approval.decided_at)
    if age <= validity:
        return ""
    limit = validity.total_seconds()
    return f"It was approved more than {limit:g} s ago, longer than it stays good."


def _no_longer_allowed(approval: Approval, interrupt: Interrupt) -> str:
    people = approval.approvers or ([approval.actor] if approval.actor else [])
    for actor in people:
        if not _said_yes(actor.id, interrupt):
            # The engine alone says so: whoever reaches it could name anybody.
            return f"Here no decision of {actor.name} is recorded."
        person = get_user_model().objects.filter(pk=actor.id).first()
        if person is None or not may_decide(person, interrupt):
            return f"{actor.name} may not decide this any more."
    return ""


def _said_yes(person: int, interrupt: Interrupt) -> bool:
    """Whether a decision is recorded by which ``person`` approved what is to run, and not what stood
    there before somebody edited it."""
    said = interrupt.decisions.filter(actor=person, verdict=Decision.Verdict.APPROVE)
    return any(
        (arguments.hash_of(arguments.parse(row.edited_args)) if row.edited_args else row.args_hash)
        == interrupt.args_hash
        for row in said.exclude(state=Decision.State.REFUSED)
    )
