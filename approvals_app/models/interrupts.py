"""Interrupts: waits for a person, as the Flow's projection."""

from datetime import datetime

from django.conf import settings
from django.db import models

from approvals_app.models.people import Principal
from sessions_app.flow.questions import NO_DEADLINE

OPERATE = "sessions_app.operate_session"


class InterruptQuerySet(models.QuerySet["Interrupt"]):
    def for_list(self) -> "InterruptQuerySet":
        return self.select_related("session", "session__agent", "session__started_by")

    def pending(self) -> "InterruptQuerySet":
        return self.filter(state=Interrupt.State.PENDING)

    def decidable_by(self, user: Principal) -> "InterruptQuerySet":
        """Approvals that ``user`` holds the permission key for, less what four eyes keep them out of,
        and questions that they may answer.

        One query more than its own, whatever there is; `rules.standing_to_decide` has the last word.
        """
        from approvals_app import rules

        keys = rules.permission_keys(user)
        rows = self
        if keys is not None:
            mine = models.Q(kind=Interrupt.Kind.APPROVAL, permission__in=keys)
            if user.has_perm(OPERATE):
                mine |= models.Q(kind=Interrupt.Kind.QUESTION)
            rows = self.filter(mine)
        barred = models.When(rules.barred_rows(rules.tied_to(user)), then=True)
        return rows.annotate(barred=models.Case(barred, default=False)).filter(barred=False)


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
    deadline = models.DateTimeField(help_text="NO_DEADLINE where it waits for as long as it takes")
    at_deadline = models.CharField(max_length=8)
    asked_at = models.DateTimeField()
    decided_at = models.DateTimeField(null=True)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    decided_by_name = models.CharField(max_length=150, blank=True)
    reason = models.TextField(blank=True)
    answers = models.JSONField(
        default=list, blank=True, help_text="A question's: for each what was chosen or written"
    )
    request_id = models.CharField(max_length=64, blank=True, help_text="The RPC that decided it")
    policy = models.JSONField(default=dict, help_text="The tool's policy when it was asked")
    level = models.PositiveSmallIntegerField(default=0, help_text="How often it was escalated")
    original_args = models.TextField(blank=True, help_text="What the agent asked for, if edited")
    edited_by_name = models.CharField(max_length=150, blank=True)
    hold_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    hold_by_name = models.CharField(max_length=150, blank=True)
    hold_since = models.DateTimeField(null=True)
    hold_until = models.DateTimeField(null=True)

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
            # Insight: all that ended in the last days.
            models.Index(fields=["decided_at"], name="interrupt_ended"),
        ]

    def __str__(self) -> str:
        return f"{self.tool} ({self.id})"

    @property
    def is_question(self) -> bool:
        return self.kind == self.Kind.QUESTION

    @property
    def due(self) -> datetime | None:
        """Its deadline, None where it has none."""
        return None if self.deadline >= NO_DEADLINE else self.deadline


class Vote(models.Model):
    """A person's word on one revision of an interrupt that needs several, or edited arguments."""

    interrupt = models.ForeignKey(Interrupt, on_delete=models.CASCADE, related_name="votes")
    revision = models.PositiveIntegerField()
    verdict = models.CharField(max_length=8)
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    person_name = models.CharField(max_length=150)
    on_behalf_of_name = models.CharField(max_length=150, blank=True)
    reason = models.TextField(blank=True)
    edited = models.BooleanField(default=False)
    at = models.DateTimeField()

    class Meta:
        ordering = ["at", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["interrupt", "revision", "person"], name="one_vote_per_person"
            )
        ]

    def __str__(self) -> str:
        return f"{self.verdict} by {self.person_name}"
