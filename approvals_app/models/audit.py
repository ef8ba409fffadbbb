"""The audit log: append-only, numbered, each entry bound to the one before by a hash."""

from typing import Any, NoReturn

from django.conf import settings
from django.db import models


class AppendOnly(Exception):
    """Entries of the audit log are written once and never changed; only the oldest are removed, by
    `approvals_app.audit_prune`."""


class AuditQuerySet(models.QuerySet["AuditEntry"]):
    def update(self, **values: Any) -> NoReturn:
        raise AppendOnly

    def bulk_update(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise AppendOnly

    def delete(self) -> NoReturn:
        raise AppendOnly


class AuditEntry(models.Model):
    """One thing that somebody did, or tried. Written by `approvals_app.audit.record` alone."""

    seq = models.PositiveBigIntegerField(unique=True)
    at = models.DateTimeField()
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    actor_name = models.CharField(max_length=150, blank=True)
    via = models.CharField(max_length=20, help_text="A key of approvals_app.audit.SURFACES")
    action = models.CharField(max_length=60)
    subject = models.CharField(
        max_length=160, help_text="What it was done to, like interrupt:apr-…"
    )
    session_id = models.CharField(max_length=100, blank=True)
    detail = models.JSONField(default=dict)
    previous_hash = models.CharField(max_length=64)
    hash = models.CharField(max_length=64)

    objects = AuditQuerySet.as_manager()

    class Meta:
        ordering = ["-seq"]
        verbose_name_plural = "audit entries"
        permissions = [("export_audit", "Can export the audit log")]
        indexes = [
            # The page's filters, newest first.
            models.Index(fields=["action", "-seq"], name="audit_action"),
            models.Index(fields=["actor_name", "-seq"], name="audit_actor_name"),
            models.Index(fields=["at"], name="audit_at"),
            models.Index(fields=["subject", "-seq"], name="audit_subject"),
            models.Index(fields=["session_id", "-seq"], name="audit_session"),
        ]

    def __str__(self) -> str:
        return f"{self.seq} {self.action}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            raise AppendOnly
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise AppendOnly


class AuditHead(models.Model):
    """The one row that knows the newest number and hash: the anchor outside the log, and its lock.

    Likewise the newest entry that was pruned, which the first one that is kept follows.
    """

    seq = models.PositiveBigIntegerField(default=0)
    hash = models.CharField(max_length=64, blank=True)
    pruned_seq = models.PositiveBigIntegerField(default=0)
    pruned_hash = models.CharField(max_length=64, blank=True)

    def __str__(self) -> str:
        return str(self.seq)
