"""The policy of an approval in words, as it was when it was asked."""

from approvals_app.models import Interrupt
from sessions_app.templatetags.dexweb import span


def then_words(interrupt: Interrupt) -> str:
    """What happens at the deadline."""
    if interrupt.at_deadline == "approve":
        return "it runs"
    step = next_in_line(interrupt)
    return f"{step['permission']} is asked" if step else "it does not run"


def next_in_line(interrupt: Interrupt) -> dict[str, object] | None:
    """The escalation step that comes next, if the policy has one left."""
    steps = interrupt.policy.get("escalation", [])
    if interrupt.at_deadline != "escalate" or interrupt.level >= len(steps):
        return None
    step: dict[str, object] = steps[interrupt.level]
    return step


def policy_lines(interrupt: Interrupt) -> list[tuple[str, str]]:
    """What else the policy says, as pairs of a name and words; what it leaves open is left out."""
    policy = interrupt.policy
    lines = [
        ("Votes", _votes(policy.get("approve_n", 1), policy.get("deny_m", 1))),
        (
            "Four eyes",
            "who had a say in it may not decide" if policy.get("four_eyes") else "",
        ),
        ("Reminders", _reminders(policy.get("reminders", []))),
        ("Escalation", _escalation(interrupt)),
        (
            "Stays good",
            f"{span(policy['validity'])} after the approval" if policy.get("validity") else "",
        ),
        ("Edits", "its arguments may be edited" if policy.get("editable") else ""),
    ]
    return [(name, words) for name, words in lines if words]


def _votes(needed: int, denies: int) -> str:
    if needed <= 1 and denies <= 1:
        return ""
    approvals = f"{needed} approvals let it run" if needed > 1 else "one approval lets it run"
    rejections = f"{denies} rejections end it" if denies > 1 else "one rejection ends it"
    return f"{approvals}, {rejections}"


def _reminders(seconds: list[float]) -> str:
    if not seconds:
        return ""
    return f"{' and '.join(map(span, sorted(seconds, reverse=True)))} before the deadline"


def _escalation(interrupt: Interrupt) -> str:
    steps = interrupt.policy.get("escalation", [])
    if not steps:
        return ""
    words = [f"{step['permission']} for {span(step['deadline'])}" for step in steps]
    return f"level {interrupt.level} of {len(steps)}: {', then '.join(words)}"
