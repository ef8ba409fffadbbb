"""Workers that run, as they say of themselves."""

from __future__ import annotations

from datetime import timedelta

from django.db import models
from django.utils import timezone

#: A worker tells of itself every few seconds; one that has not for so long is gone, or cut off.
STALE = timedelta(seconds=15)
#: One that went without a word is still shown for so long.
REMEMBERED = timedelta(minutes=10)


class WorkerQuerySet(models.QuerySet["WorkerPresence"]):
    def remembered(self) -> WorkerQuerySet:
        return self.filter(seen_at__gte=timezone.now() - REMEMBERED)

    def serving(self) -> WorkerQuerySet:
        """Those that are there and take something new."""
        return self.filter(seen_at__gte=timezone.now() - STALE, stopping=False)

    def forgotten(self) -> WorkerQuerySet:
        return self.filter(seen_at__lt=timezone.now() - REMEMBERED)


class WorkerPresence(models.Model):
    """One worker process; ``id`` is its identity in the engine too."""

    id = models.CharField(primary_key=True, max_length=160)
    pool = models.CharField(max_length=40)
    host = models.CharField(max_length=100)
    pid = models.PositiveIntegerField()
    version = models.CharField(max_length=100, blank=True)
    deployment = models.CharField(
        max_length=100,
        blank=True,
        default="",
        db_default="",
        help_text="The version that the engine knows it by; empty for a worker without one",
    )
    model_slots = models.PositiveIntegerField()
    model_used = models.PositiveIntegerField(default=0)
    tool_slots = models.PositiveIntegerField()
    tool_used = models.PositiveIntegerField(default=0)
    stopping = models.BooleanField(default=False)
    started_at = models.DateTimeField()
    seen_at = models.DateTimeField()

    objects = WorkerQuerySet.as_manager()

    class Meta:
        ordering = ["pool", "started_at", "id"]
        # Those that are shown, and those that are forgotten.
        indexes = [models.Index(fields=["seen_at"], name="worker_seen")]

    def __str__(self) -> str:
        return self.id

    @property
    def fresh(self) -> bool:
        return self.seen_at >= timezone.now() - STALE
