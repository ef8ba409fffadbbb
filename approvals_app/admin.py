"""Who may decide what; and interrupts and decisions, to look at."""

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from approvals_app.models import Decision, Interrupt, PermissionKey
from approvals_app.notify import admin as notifications  # noqa: F401 (registers its pages)
from sessions_app.admin.records import RecordAdmin
from sessions_app.admin.revision import RevisionAdmin


@admin.register(PermissionKey)
class PermissionKeyAdmin(RevisionAdmin):
    list_display = ["key", "held_by"]
    search_fields = ["key"]
    filter_horizontal = ["groups"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[PermissionKey]:
        return super().get_queryset(request).prefetch_related("groups")

    @admin.display(description="held by", empty_value="superusers only")
    def held_by(self, key: PermissionKey) -> str | None:
        return ", ".join(group.name for group in key.groups.all()) or None


@admin.register(Interrupt)
class InterruptAdmin(RecordAdmin):
    # What an agent wrote is shown on the approval's page, which marks hidden characters.
    exclude = ["args", "why"]
    list_display = [
        "id",
        "tool",
        "session_id",
        "state",
        "permission",
        "deadline",
        "decided_by_name",
    ]
    list_filter = ["state", "risk"]
    search_fields = ["id", "tool"]
    ordering = ["-deadline", "-id"]


@admin.register(Decision)
class DecisionAdmin(RecordAdmin):
    list_display = ["interrupt_id", "actor", "verdict", "state", "created_at", "delivered_at"]
    list_filter = ["verdict", "state"]
    list_select_related = ["actor"]
    search_fields = ["interrupt__id"]
    ordering = ["-created_at", "-id"]
