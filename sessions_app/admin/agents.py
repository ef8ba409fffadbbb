"""Agents with the policies of their tools."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse

from sessions_app.admin.json_field import JSONBox
from sessions_app.admin.revision import RevisionAdmin, RevisionForm
from sessions_app.agent_rules import model_errors, model_warning, settings_errors
from sessions_app.models import Agent, Credential, ToolPolicy


class AgentForm(RevisionForm):
    settings = JSONBox(
        required=False,
        empty_value={},
        initial=dict,
        help_text="For demo:script a “script”, a list with an entry for each model call; else {}.",
    )

    def clean_model(self) -> str:
        model: str = self.cleaned_data["model"].strip()
        if errors := model_errors(model):
            raise ValidationError(errors)
        return model

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        if "model" in cleaned and "settings" in cleaned:
            for error in settings_errors(cleaned["model"], cleaned["settings"]):
                self.add_error("settings", error)
        return cleaned


class ToolPolicyInline(admin.TabularInline):
    model = ToolPolicy
    extra = 0
    fields = [
        "pattern",
        "effect",
        "needs_approval",
        "permission",
        "risk",
        "deadline",
        "at_deadline",
        "timeout",
    ]


@admin.register(Agent)
class AgentAdmin(RevisionAdmin):
    form = AgentForm
    inlines = [ToolPolicyInline]
    audited_parts = ("tools",)
    list_display = ["name", "title", "model", "credential", "tool_policies", "enabled", "revision"]
    list_filter = ["enabled"]
    list_select_related = ["credential"]
    search_fields = ["name", "title", "model"]
    filter_horizontal = ["connections"]
    fieldsets = [
        (None, {"fields": ["name", "title", "enabled"]}),
        ("Model", {"fields": ["model", "credential", "instructions", "settings"]}),
        ("Tools", {"fields": ["connections", "pool"]}),
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Agent]:
        rows = super().get_queryset(request).defer("credential__value")
        return rows.annotate(policies=Count("tools", distinct=True))

    @admin.display(description="tool policies", ordering="policies")
    def tool_policies(self, agent: Agent) -> int:
        return agent.policies

    def formfield_for_foreignkey(self, db_field: Any, request: Any, **kwargs: Any) -> Any:
        if db_field.name == "credential":
            kwargs["queryset"] = Credential.objects.without_value()
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def save_model(self, request: HttpRequest, obj: Agent, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        renamed = not change or "model" in form.changed_data
        if renamed and (doubt := model_warning(obj.model)):
            messages.warning(request, doubt)

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        form: forms.ModelForm = context["adminform"].form
        if getattr(form, "conflict", None) is not None:
            rows = ToolPolicy.objects.filter(agent=form.instance.pk)
            context["stored_rows"] = [_policy_words(row) for row in rows]
        return super().render_change_form(request, context, *args, **kwargs)


def _policy_words(policy: ToolPolicy) -> str:
    asks = (
        f"asks for {policy.permission} within {policy.deadline}"
        if policy.needs_approval
        else "asks nobody"
    )
    return f"{policy.pattern}: {policy.get_effect_display().lower()}, {asks}"
