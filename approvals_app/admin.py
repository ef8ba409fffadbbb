"""Who may decide what; interrupts, with the way to where they are decided; and decisions."""

from urllib.parse import urlencode

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from approvals_app import batch
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
    """Nothing is decided here: the pages of approvals show each in full and know every rule."""

    change_form_template = "admin/interrupt_change_form.html"
    actions = ["decide_together"]
    # What an agent wrote is shown on the approval's page, which marks hidden characters.
    exclude = ["args", "original_args", "why"]
    list_display = [
        "id",
        "tool",
        "session_id",
        "state",
        "permission",
        "due",
        "decided_by_name",
    ]
    list_filter = ["state", "risk"]
    search_fields = ["id", "tool"]
    ordering = ["-deadline", "-id"]

    @admin.action(description="Decide the selected…", permissions=["view"])
    def decide_together(
        self, request: HttpRequest, chosen: QuerySet[Interrupt]
    ) -> HttpResponse | None:
        """Leads to the page that shows each in full; there a person decides, or does not."""
        ids = list(chosen.values_list("pk", flat=True)[: batch.MOST + 1])
        if len(ids) > batch.MOST:
            self.message_user(
                request,
                f"At most {batch.MOST} can be decided together. Select fewer.",
                messages.ERROR,
            )
            return None
        query = urlencode({"id": ids}, doseq=True)
        return redirect(f"{reverse('approval-batch')}?{query}")


@admin.register(Decision)
class DecisionAdmin(RecordAdmin):
    list_display = ["interrupt_id", "actor", "verdict", "state", "created_at", "delivered_at"]
    list_filter = ["verdict", "state"]
    list_select_related = ["actor"]
    search_fields = ["interrupt__id"]
    ordering = ["-created_at", "-id"]
