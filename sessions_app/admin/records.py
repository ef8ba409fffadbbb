"""What happened, to look at: sessions are changed by their Flow alone."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from sessions_app.models import Session


class RecordAdmin(admin.ModelAdmin):
    """Rows that nobody edits, adds or deletes here."""

    show_full_result_count = False
    actions: Any = None

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Session)
class SessionAdmin(RecordAdmin):
    list_display = ["id", "title", "agent", "status", "phase", "turn", "updated_at"]
    list_filter = ["status", "phase"]
    list_select_related = ["agent"]
    search_fields = ["id", "title"]
    ordering = ["-updated_at", "-id"]
