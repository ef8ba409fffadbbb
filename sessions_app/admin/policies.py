"""The policies of tools, on the pages of their agent and of their connection."""

from typing import Any

from django import forms
from django.contrib import admin

from sessions_app.admin.json_field import JSONBox
from sessions_app.models import ToolPolicy


class ToolPolicyForm(forms.ModelForm):
    reminders = JSONBox(
        required=False,
        empty_value=[],
        initial=list,
        help_text='How long before the deadline to remind, like ["10m", "2m"].',
    )
    escalation = JSONBox(
        label="Asked next",
        required=False,
        empty_value=[],
        initial=list,
        help_text="Who is asked when nobody answered, and how much longer, one after the other: "
        '[{"permission": "refunds.lead", "deadline": "30m"}].',
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance._state.adding:
            # As in a file; only what no policy names is stricter.
            self.initial["editable"] = True
        for name in ("reminders", "escalation"):
            if name in self.fields:
                self.fields[name].widget.attrs["rows"] = 2
        if "four_eyes" in self.fields:
            self.fields["four_eyes"].help_text = (
                "Whoever started the session or had a say in what is asked, and their delegates, may "
                "not decide."
            )


class ToolPolicyInline(admin.StackedInline):
    model = ToolPolicy
    form = ToolPolicyForm
    extra = 0
    fieldsets = [
        (None, {"fields": [("pattern", "enabled"), ("effect", "needs_approval")]}),
        (
            "Who is asked, and how long",
            {
                "fields": [
                    ("permission", "risk"),
                    ("deadline", "at_deadline"),
                    "reminders",
                    "escalation",
                ],
                "description": "Somebody who holds the permission key decides before the deadline.",
            },
        ),
        (
            "What counts as an answer",
            {
                "fields": [
                    ("approve_n", "deny_m"),
                    ("four_eyes", "editable"),
                    ("reason_on_approve", "reason_on_reject"),
                    "validity",
                ],
                "description": "A person counts once. What is pending keeps the policy under which "
                "it was asked for, and is asked for anew where the policy became stricter.",
            },
        ),
        (
            "How long, how often, and where it runs",
            {
                "classes": ["collapse"],
                "fields": [
                    ("timeout", "schedule_to_start"),
                    ("attempts", "backoff"),
                    ("heartbeat", "pool"),
                ],
            },
        ),
    ]


def policy_words(policy: ToolPolicy) -> str:
    if not policy.enabled:
        return f"{policy.pattern}: switched off"
    asks = (
        f"asks for {policy.permission} within {policy.deadline}"
        if policy.needs_approval
        else "asks nobody"
    )
    return f"{policy.pattern}: {policy.get_effect_display().lower()}, {asks}"
