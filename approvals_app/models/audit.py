"""The audit log: append-only, numbered, each entry bound to the one before by a hash."""

from django.conf import settings
from django.db import models


class AuditEntry(models.Model):
    """One thing that somebody did, or tried. Written by `approvals_app.audit.record` alone."""

    seq = models.PositiveBigIntegerField(unique=True)
    at = models.DateTimeField()
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    actor_name = models.CharField(max_length=150, blank=True)
    via = models.CharField(max_length=20, help_text="page, api, admin, command or system")
    action = models.CharField(max_length=60)
    subject = models.CharField(
        max_length=160, help_text="What it was done to, like interrupt:apr-…"
    )
    session_id = models.CharField(max_length=100, blank=True)
    detail = models.JSONField(default=dict)
    previous_hash = models.CharField(max_length=64)
    hash = models.CharField(max_length=64)

    class Meta:
        ordering = ["-seq"]
        verbose_name_plural = "audit entries"
        permissions = [("export_audit", "Can export the audit log")]
        indexes = [
            # The page's filters, newest first.
            models.Index(fields=["action", "-seq"], name="audit_action"),
            models.Index(fields=["actor", "-seq"], name="audit_actor"),
            models.Index(fields=["subject", "-seq"], name="audit_subject"),
            models.Index(fields=["session_id", "-seq"], name="audit_session"),
        ]

    def __str__(self) -> str:
        return f"{self.seq} {self.action}"


class AuditHead(models.Model):
    """The one row that knows the newest number and hash: the anchor outside the log, and its lock."""

    seq = models.PositiveBigIntegerField(default=0)
    hash = models.CharField(max_length=64, blank=True)

    def __str__(self) -> str:
        return str(self.seq)
