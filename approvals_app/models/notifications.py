"""Who is told about approvals, by which way, and how far each message came."""

import uuid
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db import models
from django.utils import timezone

from approvals_app.models.people import PermissionKey
from sessions_app.models.encrypted import EncryptedTextField


class NotificationEvent(models.TextChoices):
    ASK = "ask", "an approval is asked for"
    REMIND = "remind", "its deadline comes near"
    ESCALATE = "escalate", "nobody answered, and others are asked"
    EDIT = "edit", "somebody edited it, so it is voted on again"
    DECIDE = "decide", "it was approved or rejected"
    EXPIRE = "expire", "its deadline passed"
    CANCEL = "cancel", "it was canceled or replaced"


#: These ask somebody to act; once the approval is over nobody needs to read them.
CALLS_TO_ACT = (
    NotificationEvent.ASK,
    NotificationEvent.REMIND,
    NotificationEvent.ESCALATE,
    NotificationEvent.EDIT,
)


def calls_to_act() -> list[str]:
    return [event.value for event in CALLS_TO_ACT]


def every_event() -> list[str]:
    return list(NotificationEvent.values)


class NotificationPreference(models.Model):
    """What a person wants to be told by mail. Without a row: nothing."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        primary_key=True,
        related_name="notification_preference",
    )
    mail = models.BooleanField(default=False)
    events = models.JSONField(default=calls_to_act)

    def __str__(self) -> str:
        return f"{self.user}: {', '.join(self.events) if self.mail else 'no mail'}"


class ChannelQuerySet(models.QuerySet["NotificationChannel"]):
    def without_secrets(self) -> "ChannelQuerySet":
        """For every list and form: address and secret are not even read."""
        return self.defer("url", "secret")


class NotificationChannel(models.Model):
    """A place that is told about all approvals that need one of its permission keys."""

    class Kind(models.TextChoices):
        MAIL = "mail", "E-mail"
        SLACK = "slack", "Slack-compatible webhook"
        WEBHOOK = "webhook", "Signed webhook"

    name = models.SlugField(max_length=80, unique=True)
    kind = models.CharField(max_length=8, choices=Kind.choices)
    keys = models.ManyToManyField(PermissionKey, related_name="channels")
    events = models.JSONField(default=every_event)
    email = models.EmailField("e-mail address", blank=True)
    url = EncryptedTextField(blank=True, help_text="Whoever knows the address of a chat may post")
    host = models.CharField("server", max_length=255, blank=True, editable=False)
    secret = EncryptedTextField(blank=True)
    has_secret = models.BooleanField(default=False, editable=False)
    include_arguments = models.BooleanField(
        default=False,
        help_text="Send what the call would be made with, too. Everybody who reads the channel "
        "sees it, and it leaves Dexweb.",
    )
    enabled = models.BooleanField(default=True)
    revision = models.PositiveIntegerField(default=1, editable=False)

    objects = ChannelQuerySet.as_manager()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Keeps beside the encrypted values what may be known of them."""
        deferred = self.get_deferred_fields()
        if "url" not in deferred:
            self.host = urlsplit(self.url).hostname or ""
        if "secret" not in deferred:
            self.has_secret = bool(self.secret)
        super().save(*args, **kwargs)


class Notification(models.Model):
    """Something happened to an approval; written with the fact, in its transaction."""

    interrupt = models.ForeignKey(
        "approvals_app.Interrupt", on_delete=models.CASCADE, related_name="notifications"
    )
    event = models.CharField(max_length=8, choices=NotificationEvent.choices)
    said = models.JSONField(help_text="How the approval stood then")
    at = models.DateTimeField()
    spread_at = models.DateTimeField(null=True, help_text="When it was known whom to tell")

    class Meta:
        ordering = ["id"]
        indexes = [
            # What the worker has still to address; nearly always nothing.
            models.Index(
                fields=["id"],
                name="notification_unspread",
                condition=models.Q(spread_at__isnull=True),
            ),
            # What is old enough to be deleted.
            models.Index(fields=["at"], name="notification_at"),
        ]

    def __str__(self) -> str:
        return f"{self.event} {self.interrupt_id}"


class DeliveryQuerySet(models.QuerySet["NotificationDelivery"]):
    def due(self) -> "DeliveryQuerySet":
        return self.filter(
            state=NotificationDelivery.State.QUEUED, next_try_at__lte=timezone.now()
        ).order_by("next_try_at")


class NotificationDelivery(models.Model):
    """One notification on its way to one person or channel. Its id names it to the receiver."""

    class State(models.TextChoices):
        QUEUED = "queued"
        SENT = "sent"
        FAILED = "failed"
        DROPPED = "dropped", "no longer needed"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    notification = models.ForeignKey(
        Notification, on_delete=models.CASCADE, related_name="deliveries"
    )
    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE)
    channel = models.ForeignKey(NotificationChannel, null=True, on_delete=models.CASCADE)
    state = models.CharField(max_length=8, choices=State.choices, default=State.QUEUED)
    tries = models.PositiveSmallIntegerField(default=0)
    next_try_at = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(null=True)
    problem = models.CharField(max_length=500, blank=True)

    objects = DeliveryQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "notification deliveries"
        ordering = ["-next_try_at"]
        constraints = [
            models.UniqueConstraint(fields=["notification", "user"], name="tell_a_person_once"),
            models.UniqueConstraint(fields=["notification", "channel"], name="tell_a_channel_once"),
            models.CheckConstraint(
                condition=models.Q(user__isnull=True) ^ models.Q(channel__isnull=True),
                name="tell_a_person_or_a_channel",
            ),
        ]
        indexes = [
            # What the worker takes next.
            models.Index(fields=["state", "next_try_at"], name="delivery_due")
        ]

    def __str__(self) -> str:
        return str(self.id)
