"""Connections to MCP servers."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from sessions_app.admin.json_field import JSONBox
from sessions_app.admin.policies import ToolPolicyInline
from sessions_app.admin.revision import RevisionAdmin, RevisionForm
from sessions_app.models import Connection, Credential

_NO_SECRETS = " Put no secret here: everybody who may see this page reads it. Use a credential."


class ConnectionForm(RevisionForm):
    command = JSONBox(
        required=False,
        empty_value=[],
        initial=list,
        help_text='For stdio, a list of words: ["python", "-m", "my_shop"].' + _NO_SECRETS,
    )
    env = JSONBox(
        label="Environment",
        required=False,
        empty_value={},
        initial=dict,
        help_text="For stdio. “${credential}” in a value stands for the credential; without it, "
        "the credential is given as DEXWEB_CREDENTIAL." + _NO_SECRETS,
    )
    headers = JSONBox(
        required=False,
        empty_value={},
        initial=dict,
        help_text="For HTTP. “${credential}” in a value stands for the credential; without it, "
        "the credential is sent as a bearer token." + _NO_SECRETS,
    )


@admin.register(Connection)
class ConnectionAdmin(RevisionAdmin):
    form = ConnectionForm
    inlines = [ToolPolicyInline]
    audited_parts = ("tools",)
    list_display = ["name", "transport", "credential", "enabled", "revision"]
    list_filter = ["transport", "enabled"]
    list_select_related = ["credential"]
    search_fields = ["name"]
    fieldsets = [
        (None, {"fields": ["name", "transport", "enabled", "credential"]}),
        ("A program on this machine", {"fields": ["command", "env"]}),
        ("A server", {"fields": ["url", "headers"]}),
    ]

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).defer("credential__value")

    def formfield_for_foreignkey(self, db_field: Any, request: Any, **kwargs: Any) -> Any:
        if db_field.name == "credential":
            kwargs["queryset"] = Credential.objects.without_value()
        return super().formfield_for_foreignkey(db_field, request, **kwargs)
