"""Credentials: a value goes in and never comes out."""

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.decorators import method_decorator
from django.views.decorators.debug import sensitive_post_parameters

from sessions_app.admin.revision import RevisionAdmin, RevisionForm
from sessions_app.models import Credential


class CredentialForm(RevisionForm):
    new_value = forms.CharField(
        label="Value",
        required=False,
        max_length=16 * 1024,
        widget=forms.PasswordInput(
            render_value=False, attrs={"autocomplete": "new-password", "size": 60}
        ),
    )
    hidden_values = ("new_value",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        value = self.fields.get("new_value")
        if value is not None:
            value.help_text = self._present()

    def stored_rows(self) -> QuerySet[Credential]:
        return Credential.objects.without_value()

    def _present(self) -> str:
        if not self.instance.pk:
            return "It is stored encrypted and never shown again."
        ending = f" (ends in …{self.instance.last_four})" if self.instance.last_four else ""
        return f"Leave it blank to keep the present value{ending}. It is never shown."

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        if cleaned.get("new_value"):
            return cleaned
        if not self.instance.pk:
            self.add_error("new_value", "Enter the secret that this credential stands for.")
        elif "base_url" in self.changed_data:
            # Else whoever may edit but not read could have the key sent to a server of theirs.
            self.add_error(
                "new_value",
                "The key would be sent to another address: enter it again to allow that.",
            )
        return cleaned


@admin.register(Credential)
class CredentialAdmin(RevisionAdmin):
    form = CredentialForm
    audited_secrets = {"new_value": "value"}
    list_display = ["name", "ending", "readable", "base_url", "used_by", "enabled", "updated_at"]
    list_filter = ["enabled"]
    search_fields = ["name", "base_url"]
    fieldsets = [(None, {"fields": ["name", "new_value", "base_url", "enabled"]})]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Credential]:
        rows = super().get_queryset(request).sealed()
        return rows.prefetch_related("agent_set", "connection_set")

    @admin.display(description="value", empty_value="stored")
    def ending(self, credential: Credential) -> str:
        return f"…{credential.last_four}" if credential.last_four else "stored"

    @admin.display(description="can be read", boolean=True)
    def readable(self, credential: Credential) -> bool:
        return credential.readable

    @admin.display(description="used by", empty_value="nothing")
    def used_by(self, credential: Credential) -> str | None:
        agents = [f"agent {agent.name}" for agent in credential.agent_set.all()]
        connections = [f"connection {row.name}" for row in credential.connection_set.all()]
        return ", ".join(agents + connections) or None

    @method_decorator(sensitive_post_parameters("new_value"))
    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        return super().changeform_view(request, *args, **kwargs)

    def save_model(self, request: HttpRequest, obj: Credential, form: Any, change: bool) -> None:
        if form.cleaned_data.get("new_value"):
            obj.value = form.cleaned_data["new_value"]
        super().save_model(request, obj, form, change)
