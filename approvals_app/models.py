"""Interrupts (waits for a person), the decisions people make on them, and who may make them."""

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, Group
from django.db import models

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


class InterruptQuerySet(models.QuerySet["Interrupt"]):
    def for_list(self) -> "InterruptQuerySet":
        return self.select_related("session", "session__agent", "session__started_by")

    def pending(self) -> "InterruptQuerySet":
        return self.filter(state=Interrupt.State.PENDING)

    def decidable_by(self, user: Principal) -> "InterruptQuerySet":
        """Those that ``user`` holds the permission key for."""
        from approvals_app.rules import permission_keys

        keys = permission_keys(user)
        return self if keys is None else self.filter(permission__in=keys)


class Interrupt(models.Model):
    """One wait for a person. Decided in the workflow; this row is its projection."""

    class Kind(models.TextChoices):
        APPROVAL = "approval"
        QUESTION = "question"

    class State(models.TextChoices):
        PENDING = "pending"
        APPROVED = "approved"
        REJECTED = "rejected"
        EXPIRED = "expired"
        CANCELED = "canceled"
        SUPERSEDED = "superseded"
        INVALIDATED = "invalidated"
        ANSWERED = "answered"

    id = models.CharField(primary_key=True, max_length=64)
    session = models.ForeignKey(
        "sessions_app.Session", on_delete=models.CASCADE, related_name="interrupts"
    )
    kind = models.CharField(max_length=10, choices=Kind.choices, default=Kind.APPROVAL)
    step_id = models.CharField(max_length=60)
    call_id = models.CharField(max_length=160)
    turn = models.PositiveIntegerField()
    tool = models.CharField(max_length=200)
    effect = models.CharField(max_length=12)
    risk = models.CharField(max_length=8)
    permission = models.CharField(max_length=100)
    args = models.TextField(help_text="JSON text, exactly what will run")
    args_hash = models.CharField(max_length=64)
    revision = models.PositiveIntegerField(default=1)
    why = models.TextField(blank=True, help_text="What the agent said when it asked")
    state = models.CharField(max_length=12, choices=State.choices, default=State.PENDING)
    deadline = models.DateTimeField()
    at_deadline = models.CharField(max_length=8)
    asked_at = models.DateTimeField()
    decided_at = models.DateTimeField(null=True)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    decided_by_name = models.CharField(max_length=150, blank=True)
    reason = models.TextField(blank=True)
    request_id = models.CharField(max_length=64, blank=True, help_text="The RPC that decided it")

    objects = InterruptQuerySet.as_manager()

    class Meta:
        ordering = ["deadline", "id"]
        constraints = [
            models.UniqueConstraint(fields=["session", "step_id"], name="interrupt_once_per_step")
        ]
        indexes = [
            # The inbox: pending first by deadline; decided ones newest first.
            models.Index(fields=["state", "deadline", "id"], name="interrupt_inbox"),
            models.Index(fields=["state", "-decided_at", "-id"], name="interrupt_decided"),
        ]

    def __str__(self) -> str:
        return f"{self.tool} ({self.id})"


class Decision(models.Model):
    """A person's decision in the outbox: written first, then delivered to the engine."""

    class State(models.TextChoices):
        SUBMITTING = "submitting"
        DELIVERED = "delivered"
        DELIVERY_PENDING = "delivery_pending"
        REFUSED = "refused"

    class Verdict(models.TextChoices):
        APPROVE = "approve"
        REJECT = "reject"

    request_id = models.CharField(max_length=64, unique=True)
    interrupt = models.ForeignKey(Interrupt, on_delete=models.CASCADE, related_name="decisions")
    actor = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    verdict = models.CharField(max_length=8, choices=Verdict.choices)
    revision = models.PositiveIntegerField()
    args_hash = models.CharField(max_length=64)
    reason = models.TextField(blank=True)
    state = models.CharField(max_length=20, choices=State.choices, default=State.SUBMITTING)
    refusal = models.JSONField(default=dict, blank=True, help_text="The error's code and details")
    tries = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)
    delivered_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["created_at", "id"]
        constraints = [
            # One person, one word on one revision; a refused one may be followed by another.
            models.UniqueConstraint(
                fields=["interrupt", "revision", "actor"],
                condition=~models.Q(state="refused"),
                name="one_standing_decision_per_person",
            )
        ]
        # The sweeper: what is still to be delivered, oldest first.
        indexes = [models.Index(fields=["state", "created_at"], name="decision_outbox")]

    def __str__(self) -> str:
        return f"{self.verdict} by {self.actor}"
