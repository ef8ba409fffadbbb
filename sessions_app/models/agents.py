"""Agents: named definitions that sessions are started with."""

import fnmatch
from datetime import timedelta

from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator, RegexValidator
from django.db import models

PERMISSION_KEY = RegexValidator(
    r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+$",
    "Use lower-case words joined by dots, like refunds.approve.",
)


class AgentQuerySet(models.QuerySet["Agent"]):
    def enabled(self) -> "AgentQuerySet":
        return self.filter(enabled=True)


class Agent(models.Model):
    """A model, instructions, tools and the policies of those tools."""

    name = models.SlugField(max_length=60, unique=True)
    title = models.CharField(max_length=120, blank=True)
    model = models.CharField(
        max_length=120,
        help_text="Anything pydantic-ai names, like openai:gpt-5.2 or anthropic:claude-sonnet-4-5; "
        "demo:refund-desk and demo:script work offline.",
    )
    credential = models.ForeignKey(
        "sessions_app.Credential", null=True, blank=True, on_delete=models.PROTECT
    )
    instructions = models.TextField(blank=True, max_length=64 * 1024)
    connections = models.ManyToManyField("sessions_app.Connection", blank=True)
    pool = models.SlugField(max_length=40, default="default")
    settings = models.JSONField(default=dict, blank=True)
    enabled = models.BooleanField(default=True)
    revision = models.PositiveIntegerField(default=1, editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    objects = AgentQuerySet.as_manager()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.title or self.name

    def policy_for(self, tool: str) -> "ToolPolicy":
        """The policy of ``tool`` (full name): an exact pattern wins, else the longest that matches.

        A tool that no pattern names gets the strictest one: a write that needs ``tools.approve``.
        """
        matching = [p for p in self.tools.all() if fnmatch.fnmatchcase(tool, p.pattern)]
        if not matching:
            return ToolPolicy(agent=self, pattern=tool)
        return max(matching, key=lambda p: (p.pattern == tool, len(p.pattern.rstrip("*"))))


class ToolPolicy(models.Model):
    """What a tool does to the world, and whether a person must say yes first."""

    class Effect(models.TextChoices):
        READ = "read", "Reads only"
        IDEMPOTENT = "idempotent", "Writes, safe to repeat"
        WRITE = "write", "Writes, never repeated"

    class Risk(models.TextChoices):
        LOW = "low", "Low"
        MEDIUM = "medium", "Medium"
        HIGH = "high", "High"

    class AtDeadline(models.TextChoices):
        REJECT = "reject", "Do not run it"
        APPROVE = "approve", "Run it"

    agent = models.ForeignKey(Agent, related_name="tools", on_delete=models.CASCADE)
    pattern = models.CharField(
        max_length=160,
        help_text="A tool's full name, like shop__issue_refund, or a pattern, like shop__*.",
    )
    effect = models.CharField(max_length=12, choices=Effect.choices, default=Effect.WRITE)
    needs_approval = models.BooleanField(default=True)
    permission = models.CharField(
        max_length=100, default="tools.approve", validators=[PERMISSION_KEY], blank=True
    )
    risk = models.CharField(max_length=8, choices=Risk.choices, default=Risk.MEDIUM)
    deadline = models.DurationField(
        default=timedelta(hours=1),
        validators=[MinValueValidator(timedelta(seconds=1))],
        help_text="How long a person has to answer, as hours:minutes:seconds.",
    )
    at_deadline = models.CharField(
        max_length=8, choices=AtDeadline.choices, default=AtDeadline.REJECT
    )
    timeout = models.DurationField(
        default=timedelta(minutes=2),
        validators=[MinValueValidator(timedelta(seconds=1))],
        help_text="How long one call may take, as hours:minutes:seconds.",
    )

    class Meta:
        ordering = ["pattern"]
        verbose_name_plural = "tool policies"
        constraints = [
            models.UniqueConstraint(fields=["agent", "pattern"], name="one_policy_per_pattern")
        ]

    def __str__(self) -> str:
        return self.pattern

    def clean(self) -> None:
        if self.needs_approval and not self.permission:
            raise ValidationError({"permission": "Say which permission a person needs to decide."})
        if self.at_deadline == self.AtDeadline.APPROVE and self.effect == self.Effect.WRITE:
            raise ValidationError(
                {
                    "at_deadline": "A write never runs because nobody answered. Choose “Do not run it”."
                }
            )
