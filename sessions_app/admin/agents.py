"""Agents with the policies of their tools."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin import helpers
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.db.models import Count, QuerySet
from django.forms import Media
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path, reverse

from sessions_app.admin.json_field import JSONBox
from sessions_app.admin.policies import ToolPolicyInline, policy_words
from sessions_app.admin.revision import RevisionAdmin, RevisionForm
from sessions_app.agent_rules import model_errors, model_warning, settings_errors, unknown_agents
from sessions_app.models import Agent, Credential, ToolPolicy
from sessions_app.models.agents import with_lent
from sessions_app.policy_preview import Preview, preview


class AgentForm(RevisionForm):
    settings = JSONBox(
        required=False,
        empty_value={},
        initial=dict,
        help_text="For demo:script a “script”, a list with an entry for each model call; else {}.",
    )

    delegates = forms.MultipleChoiceField(
        required=False,
        help_text="Agents that it may give tasks to, each in a session of its own. Hold Ctrl or ⌘ to "
        "choose several.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "delegates" in self.fields:
            # One that is gone is still shown, so that it can be taken away.
            names = {*Agent.objects.values_list("name", flat=True), *self.instance.delegates}
            self.fields["delegates"].choices = [(name, name) for name in sorted(names)]

    def clean_delegates(self) -> list[str]:
        names: list[str] = self.cleaned_data["delegates"]
        for name in unknown_agents(names):
            raise ValidationError(f"There is no agent called “{name}” any more. Take it away.")
        return names

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


@admin.register(Agent)
class AgentAdmin(RevisionAdmin):
    form = AgentForm
    inlines = [ToolPolicyInline]
    change_form_template = "admin/agent_change_form.html"
    audited_parts = ("tools",)
    list_display = ["name", "title", "model", "credential", "tool_policies", "enabled", "revision"]
    list_filter = ["enabled"]
    list_select_related = ["credential"]
    search_fields = ["name", "title", "model"]
    filter_horizontal = ["connections"]
    fieldsets = [
        (None, {"fields": ["name", "title", "enabled"]}),
        ("Model", {"fields": ["model", "credential", "instructions", "settings"]}),
        (
            "How long and how often a model call is tried",
            {
                "classes": ["collapse"],
                "fields": [
                    ("model_timeout", "model_schedule_to_start"),
                    ("model_attempts", "model_backoff"),
                    "model_heartbeat",
                ],
                "description": "Counts for sessions that start from now on.",
            },
        ),
        (
            "Limits of a turn",
            {
                "classes": ["collapse"],
                "fields": [("model_calls_per_turn", "parallel_calls")],
                "description": "Counts for sessions that start from now on.",
            },
        ),
        ("Tools", {"fields": ["connections", "delegates", "pool"]}),
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Agent]:
        rows = super().get_queryset(request).defer("credential__value")
        return rows.annotate(policy_count=Count("tools", distinct=True))

    @admin.display(description="tool policies", ordering="policy_count")
    def tool_policies(self, agent: Agent) -> int:
        return agent.policy_count

    def formfield_for_foreignkey(self, db_field: Any, request: Any, **kwargs: Any) -> Any:
        if db_field.name == "credential":
            kwargs["queryset"] = Credential.objects.without_value()
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def save_model(self, request: HttpRequest, obj: Agent, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        renamed = not change or "model" in form.changed_data
        if renamed and (doubt := model_warning(obj.model)):
            messages.warning(request, doubt)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.preview_view)
        return [path("<int:pk>/preview/", view, name="agent-preview"), *super().get_urls()]

    def preview_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """The form as it was typed, and what its policies would have meant. Stores nothing."""
        agent = self.get_object(request, str(pk))
        change_url = reverse("admin:sessions_app_agent_change", args=[pk])
        if agent is None or not self.has_change_permission(request, agent):
            raise PermissionDenied
        if request.method != "POST":
            return redirect(change_url)
        with transaction.atomic():
            form = self.get_form(request, agent, change=True)(request.POST, instance=agent)
            formsets, inlines = self._create_formsets(request, form.instance, change=True)
            valid = form.is_valid() and all([formset.is_valid() for formset in formsets])
            found = self._previewed(pk, form, formsets) if valid else None
            transaction.set_rollback(True)
        shown = self.get_inline_formsets(request, formsets, inlines, agent)
        fieldsets = self.get_fieldsets(request, agent)
        context = {
            **self.admin_site.each_context(request),
            "title": "Preview; nothing is saved yet",
            "adminform": helpers.AdminForm(form, fieldsets, {}, model_admin=self),
            "errors": helpers.AdminErrorList(form, formsets),
            "inline_admin_formsets": shown,
            "media": self.media + form.media + sum((one.media for one in shown), Media()),
            "object_id": str(pk),
            "original": agent,
            "is_popup": False,
            "to_field": None,
            "preview": found,
        }
        return self.render_change_form(
            request, context, change=True, obj=agent, form_url=change_url
        )

    def _previewed(self, pk: int, form: forms.ModelForm, formsets: list[Any]) -> Preview:
        own = [
            policy.instance
            for formset in formsets
            for policy in formset.forms
            if policy.cleaned_data.get("pattern") and not policy.cleaned_data.get("DELETE")
        ]
        connections = list(form.cleaned_data["connections"])
        return preview(Agent.objects.get(pk=pk), with_lent(own, connections))

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        form: forms.ModelForm = context["adminform"].form
        if getattr(form, "conflict", None) is not None:
            rows = ToolPolicy.objects.filter(agent=form.instance.pk)
            context["stored_rows"] = [policy_words(row) for row in rows]
        return super().render_change_form(request, context, *args, **kwargs)
