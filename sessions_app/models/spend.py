"""What model calls may cost and what they cost: budgets, prices, and the books that budgets read."""

from __future__ import annotations

import fnmatch
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone

#: What model providers bill in, and therefore what budgets and prices are in.
CURRENCY = "USD"


class SpendBudgetQuerySet(models.QuerySet["SpendBudget"]):
    def in_force(self, agent: int, user: int | None) -> SpendBudgetQuerySet:
        """Those that a call in a session of this agent and starter counts for, in a fixed order."""
        return self.filter(
            Q(agent=None) | Q(agent=agent), Q(user=None) | Q(user=user), enabled=True
        ).order_by("pk")


class SpendBudget(models.Model):
    """An amount that may be spent on model calls in a period; counted in one sum or in several."""

    class Scope(models.TextChoices):
        SESSION = "session", "Each session for itself"
        AGENT = "agent", "Each agent for itself"
        USER = "user", "Each user for themselves"
        ALL = "all", "All together"

    class Period(models.TextChoices):
        TOTAL = "total", "In all"
        DAY = "day", "A day (UTC)"
        MONTH = "month", "A month (UTC)"

    name = models.SlugField(max_length=80, unique=True)
    scope = models.CharField("counted", max_length=8, choices=Scope.choices)
    agent = models.ForeignKey(
        "sessions_app.Agent",
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="budgets",
        help_text="Only for sessions of this agent; empty for any.",
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="+",
        help_text="Only for sessions that this user started; empty for anybody's.",
    )
    period = models.CharField(max_length=8, choices=Period.choices)
    amount = models.DecimalField(
        max_digits=14,
        decimal_places=6,
        validators=[MinValueValidator(Decimal(0))],
        help_text="US dollars. At this sum the next model call is stopped before it is made.",
    )
    allow_unknown = models.BooleanField(
        "allow calls of unknown price",
        default=False,
        help_text="They are not in the sum. Otherwise they are stopped until a price is entered.",
    )
    enabled = models.BooleanField(default=True)
    revision = models.PositiveIntegerField(default=1, editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    objects = SpendBudgetQuerySet.as_manager()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    def since(self, today: date) -> date | None:
        """The first day of the period that ``today`` is in; None when the period has no end."""
        starts = {self.Period.DAY: today, self.Period.MONTH: today.replace(day=1)}
        return starts.get(self.period)  # type: ignore[call-overload]

    def until(self, today: date) -> date | None:
        """The day on which the next period begins, and counting with it."""
        if self.period == self.Period.DAY:
            return today + timedelta(days=1)
        if self.period == self.Period.MONTH:
            return (today.replace(day=1) + timedelta(days=32)).replace(day=1)
        return None


class ModelPrice(models.Model):
    """A price of one's own for a model, over the list price or where none is known."""

    name = models.CharField(
        "model",
        max_length=160,
        help_text="A model's name as agents have it, like openai:gpt-5.2, or a pattern, like local:*",
    )
    input = models.DecimalField(
        "input", max_digits=12, decimal_places=6, validators=[MinValueValidator(Decimal(0))]
    )
    output = models.DecimalField(
        "output", max_digits=12, decimal_places=6, validators=[MinValueValidator(Decimal(0))]
    )
    cache_read = models.DecimalField(
        "cached input, read",
        max_digits=12,
        decimal_places=6,
        null=True,
        blank=True,
        validators=[MinValueValidator(Decimal(0))],
        help_text="Empty: as other input.",
    )
    cache_write = models.DecimalField(
        "cached input, written",
        max_digits=12,
        decimal_places=6,
        null=True,
        blank=True,
        validators=[MinValueValidator(Decimal(0))],
        help_text="Empty: as other input.",
    )
    valid_from = models.DateTimeField(
        default=timezone.now, help_text="Calls before keep what they cost."
    )
    revision = models.PositiveIntegerField(default=1, editable=False)

    class Meta:
        ordering = ["name", "-valid_from"]
        constraints = [
            models.UniqueConstraint(fields=["name", "valid_from"], name="one_price_at_a_time")
        ]

    def __str__(self) -> str:
        return f"{self.name} from {self.valid_from:%Y-%m-%d %H:%M}"

    def clean(self) -> None:
        if ":" not in self.name and not set(self.name) & set("*?"):
            raise ValidationError({"name": "Write provider:model, like openai:gpt-5.2."})

    def fits(self, model: str) -> bool:
        return fnmatch.fnmatchcase(model, self.name)


class SpendDay(models.Model):
    """What a session has spent on one day (UTC), for as long as any budget might ask."""

    day = models.DateField()
    session = models.ForeignKey(
        "sessions_app.Session", null=True, on_delete=models.SET_NULL, related_name="spend_days"
    )
    agent = models.ForeignKey("sessions_app.Agent", on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    spent = models.DecimalField(max_digits=14, decimal_places=6, default=0)
    raised = models.DecimalField(
        max_digits=14, decimal_places=6, default=0, help_text="Part of it that a raise let through"
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["session", "day"], name="spend_once_per_session_day")
        ]
        indexes = [
            # A budget's sum, for an agent, for a user, for all.
            models.Index(fields=["agent", "day", "spent"], name="spend_of_agent"),
            models.Index(fields=["user", "day", "spent"], name="spend_of_user"),
            models.Index(fields=["day", "spent"], name="spend_of_day"),
        ]

    def __str__(self) -> str:
        return f"{self.session_id} on {self.day}"


class SpendReservation(models.Model):
    """What a call that was let through is expected to cost at most, until it is known.

    One that never becomes known, since its worker died or the provider may have billed what it
    did not answer, stays: it counts as spent.
    """

    session = models.ForeignKey("sessions_app.Session", on_delete=models.CASCADE, related_name="+")
    step_id = models.CharField(max_length=60)
    attempt = models.PositiveIntegerField()
    agent = models.ForeignKey("sessions_app.Agent", on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    day = models.DateField()
    at = models.DateTimeField()
    amount = models.DecimalField(max_digits=14, decimal_places=6)
    over = models.BooleanField(default=False, help_text="A raise let it through")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["session", "step_id", "attempt"], name="one_reservation_per_attempt"
            )
        ]
        indexes = [
            models.Index(fields=["agent", "day", "amount"], name="reserved_of_agent"),
            models.Index(fields=["user", "day", "amount"], name="reserved_of_user"),
            models.Index(fields=["day", "amount"], name="reserved_of_day"),
        ]

    def __str__(self) -> str:
        return f"{self.session_id} {self.step_id} attempt {self.attempt}"


class UnpricedModel(models.Model):
    """A model that was called though its price is not known: said, and never counted as nothing."""

    model = models.CharField(max_length=160, unique=True)
    calls = models.PositiveIntegerField(default=0)
    last_session = models.ForeignKey(
        "sessions_app.Session", null=True, on_delete=models.SET_NULL, related_name="+"
    )
    last_at = models.DateTimeField()

    class Meta:
        ordering = ["-last_at"]

    def __str__(self) -> str:
        return self.model


def today_of(at: datetime) -> date:
    """The day that a moment is counted on: UTC, whatever the server's or the reader's zone."""
    return at.astimezone(UTC).date()
