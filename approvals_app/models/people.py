"""Who may decide: permission keys, and handing them to another for a time."""

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, Group
from django.core.exceptions import ValidationError
from django.db import models
from django.utils import timezone

from sessions_app.models.agents import PERMISSION_KEY

Principal = AbstractBaseUser | AnonymousUser


class PermissionKey(models.Model):
    """A lower-case dotted key, like ``refunds.approve``, and the groups that hold it."""

    key = models.CharField(max_length=100, unique=True, validators=[PERMISSION_KEY])
    groups = models.ManyToManyField(Group, blank=True, related_name="permission_keys")
    revision = models.PositiveIntegerField(default=1, editable=False)

    class Meta:
        ordering = ["key"]

    def __str__(self) -> str:
        return self.key


class DelegationQuerySet(models.QuerySet["Delegation"]):
    def in_force(self) -> "DelegationQuerySet":
        """Those that count at this moment, given by and to people who are active."""
        now = timezone.now()
        return self.filter(
            starts_at__lte=now,
            ends_at__gt=now,
            revoked_at__isnull=True,
            giver__is_active=True,
            receiver__is_active=True,
        )


class Delegation(models.Model):
    """A person hands a permission key that they hold to another, for a time and with a reason."""

    giver = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="delegations_given"
    )
    receiver = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="delegations_received"
    )
    key = models.CharField(max_length=100, validators=[PERMISSION_KEY])
    reason = models.CharField(max_length=500)
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = DelegationQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        indexes = [
            # What a person may decide for others, asked with every page of approvals.
            models.Index(fields=["receiver", "ends_at"], name="delegation_received")
        ]

    def __str__(self) -> str:
        return f"{self.key}: {self.giver} to {self.receiver}"

    def clean(self) -> None:
        if self.giver_id == self.receiver_id:
            raise ValidationError({"receiver": "Choose somebody else."})
        if self.ends_at <= self.starts_at:
            raise ValidationError({"ends_at": "It must end after it starts."})
