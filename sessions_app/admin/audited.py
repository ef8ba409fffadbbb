"""What is changed in the admin site is in the audit log: by whom, before and after."""

from typing import Any

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from approvals_app.audit_changes import record_change, snapshot


class AuditedAdmin(admin.ModelAdmin):
    """The entry is written last, in the transaction of the change itself."""

    #: Relations to rows that are edited as parts of this one, like an agent's policies.
    audited_parts: tuple[str, ...] = ()
    #: Form fields that hold a secret, and what the secret is called.
    audited_secrets: dict[str, str] = {}

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        self._before(request)[obj.pk] = snapshot(obj, self.audited_parts) if change else {}
        super().save_model(request, obj, form, change)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        super().save_related(request, form, formsets, change)
        row = form.instance
        before = self._before(request).get(row.pk, {})
        secrets = [
            name for field, name in self.audited_secrets.items() if form.cleaned_data.get(field)
        ]
        record_change(request.user, row, before, snapshot(row, self.audited_parts), secrets)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        before = snapshot(obj, self.audited_parts)
        key = obj.pk
        super().delete_model(request, obj)
        obj.pk = key
        record_change(request.user, obj, before, {})

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        rows: list[tuple[Model, dict[str, Any]]] = [
            (row, snapshot(row, self.audited_parts)) for row in queryset
        ]
        super().delete_queryset(request, queryset)
        for row, before in rows:
            record_change(request.user, row, before, {})

    def _before(self, request: HttpRequest) -> dict[Any, dict[str, Any]]:
        """How the rows of this request were; an attribute of the request, as the admin is shared."""
        if not hasattr(request, "_audited_before"):
            request._audited_before = {}  # type: ignore[attr-defined]
        held: dict[Any, dict[str, Any]] = request._audited_before  # type: ignore[attr-defined]
        return held
