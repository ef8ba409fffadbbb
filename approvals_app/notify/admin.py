"""Channels to be told, and how far each message came."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.decorators import method_decorator
from django.views.decorators.debug import sensitive_post_parameters

from approvals_app.models import NotificationChannel, NotificationDelivery
from approvals_app.notify.channel_form import ChannelForm
from sessions_app.admin.records import RecordAdmin
from sessions_app.admin.revision import RevisionAdmin


@admin.register(NotificationChannel)
class NotificationChannelAdmin(RevisionAdmin):
    form = ChannelForm
    audited_secrets = {"new_url": "url", "new_secret": "secret"}
    list_display = ["name", "kind", "goes_to", "for_keys", "include_arguments", "enabled"]
    list_filter = ["kind", "enabled"]
    search_fields = ["name", "host", "email"]
    filter_horizontal = ["keys"]
    fieldsets = [
        (None, {"fields": ["name", "kind", "keys", "events", "include_arguments", "enabled"]}),
        ("E-mail", {"fields": ["email"]}),
        ("Webhooks", {"fields": ["new_url", "new_secret"]}),
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[NotificationChannel]:
        rows = super().get_queryset(request).defer("url", "secret")
        return rows.prefetch_related("keys")

    @admin.display(description="goes to")
    def goes_to(self, channel: NotificationChannel) -> str:
        return channel.email if channel.kind == NotificationChannel.Kind.MAIL else channel.host

    @admin.display(description="for")
    def for_keys(self, channel: NotificationChannel) -> str:
        return ", ".join(str(key) for key in channel.keys.all())

    @method_decorator(sensitive_post_parameters("new_url", "new_secret"))
    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        return super().changeform_view(request, *args, **kwargs)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        if form.cleaned_data.get("new_url"):
            obj.url = form.cleaned_data["new_url"]
        if form.cleaned_data.get("new_secret"):
            obj.secret = form.cleaned_data["new_secret"]
        super().save_model(request, obj, form, change)


@admin.register(NotificationDelivery)
class NotificationDeliveryAdmin(RecordAdmin):
    list_display = ["id", "event", "about", "to", "state", "tries", "next_try_at", "problem"]
    list_filter = ["state", "notification__event"]
    search_fields = ["notification__interrupt__id"]
    ordering = ["-next_try_at"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[NotificationDelivery]:
        rows = super().get_queryset(request).select_related("notification", "user", "channel")
        return rows.defer("channel__url", "channel__secret")

    @admin.display(description="event", ordering="notification__event")
    def event(self, delivery: NotificationDelivery) -> str:
        return delivery.notification.event

    @admin.display(description="approval")
    def about(self, delivery: NotificationDelivery) -> str:
        return delivery.notification.interrupt_id

    @admin.display(description="to")
    def to(self, delivery: NotificationDelivery) -> str:
        return str(delivery.channel or delivery.user)
