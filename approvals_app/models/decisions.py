"""The outbox of decisions."""

from django.conf import settings
from django.db import models

from approvals_app.models.interrupts import Interrupt
from dexweb.engine.errors import EngineStateUnreadable, NoWorker, RpcLockConflict


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
    edited_args = models.TextField(blank=True, help_text="JSON text, if the arguments were edited")
    on_behalf_of = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )
    via = models.CharField(
        max_length=20,
        db_default="system",
        default="system",
        help_text="Where it was made: a key of approvals_app.audit.SURFACES",
    )
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

    @property
    def why_kept(self) -> str:
        """Why one that is kept is not delivered yet, and when it will be."""
        match self.refusal.get("code"):
            case EngineStateUnreadable.code:
                return f"{EngineStateUnreadable.why} The decision is kept, and is delivered after that."
            case NoWorker.code:
                return (
                    "No worker has taken it yet. It is kept, and is delivered as soon as one does."
                )
            case RpcLockConflict.code:
                return (
                    f"{self.refusal.get('holder') or 'Another request'} is working on it. It is kept, "
                    "and is delivered once that is over."
                )
        return (
            "The engine has not taken it yet. It is kept, and is delivered as soon as the engine "
            "is back."
        )


#: It is on its way.
UNDELIVERED = (Decision.State.SUBMITTING, Decision.State.DELIVERY_PENDING)
