"""Which keys came with which request, so that a retry gets the first answer."""

from django.conf import settings
from django.db import models


class IdempotencyKey(models.Model):
    """One ``Idempotency-Key`` of one person. ``status`` is null while there is no final answer.

    A retryable refusal leaves it null: the request runs again, under the same request id.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=200)
    path = models.CharField(max_length=300)
    body_hash = models.CharField(max_length=64, help_text="Keyed, since a body may hold a secret")
    status = models.PositiveSmallIntegerField(null=True)
    body = models.TextField(blank=True, help_text="The answer as JSON text")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "key"], name="idempotency_key_once_per_person")
        ]
        # Forgetting the old ones.
        indexes = [models.Index(fields=["created_at"], name="idempotency_key_age")]

    def __str__(self) -> str:
        return f"{self.key} on {self.path}"
