"""Agents: named definitions that sessions are started with."""

import fnmatch
from datetime import timedelta

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models

from sessions_app.flow.terms import DELEGATE
from sessions_app.models.connectors import Connection
from sessions_app.tools.durations import parse_duration

MOST_ESCALATIONS = 5
#: Effects, from what may be repeated at will to what may not at all.
STRICTNESS = ("read", "idempotent", "write")

SECOND = MinValueValidator(timedelta(seconds=1))
ATTEMPTS = [MinValueValidator(1), MaxValueValidator(20)]

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
    delegates = models.JSONField(
        default=list,
        blank=True,
        help_text="The names of agents that it may give tasks to, each in a session of its own.",
    )
    pool = models.SlugField(
        max_length=40, default="default", help_text="Whose workers run its sessions."
    )
    model_timeout = models.DurationField(
        null=True,
        blank=True,
        validators=[SECOND],
        help_text="How long one model call may take, as hours:minutes:seconds; empty for 10 minutes.",
    )
    model_attempts = models.PositiveSmallIntegerField(
        null=True,
        blank=True,
        validators=ATTEMPTS,
        help_text="How often a model call is tried; empty for 3.",
    )
    model_backoff = models.DurationField(
        null=True,
        blank=True,
        validators=[SECOND],
        help_text="The wait before a model call is tried again, doubling; empty for 1 second.",
    )
    model_schedule_to_start = models.DurationField(
        null=True,
        blank=True,
        validators=[SECOND],
        help_text="How long a model call may wait for a free slot before people are told; empty "
        "for 10 minutes. It goes on waiting.",
    )
    model_heartbeat = models.DurationField(
        null=True,
        blank=True,
        validators=[SECOND],
        help_text="How long its worker may give no sign of life; empty for the installation's own.",
    )
    model_calls_per_turn = models.PositiveSmallIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(500)],
        help_text="A turn ends at this many; empty for the installation's own.",
    )
    parallel_calls = models.PositiveSmallIntegerField(
        "parallel tool calls",
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(64)],
        help_text="Of one answer, more are not run; empty for the installation's own.",
    )
    settings = models.JSONField(default=dict, blank=True)
    enabled = models.BooleanField(default=True)
    revision = models.PositiveIntegerField(default=1, editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    objects = AgentQuerySet.as_manager()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.title or self.name

    def policies(self) -> "list[ToolPolicy]":
        """Its own and those of its connections; of two for one pattern, its own."""
        return with_lent(list(self.tools.all()), list(self.connections.all()))

    def policies_shown(self) -> "list[ToolPolicy]":
        """For people: the last one is for the tools that no other names."""
        named = [policy for policy in self.policies() if policy.pattern != "*"]
        return [*named, self.policy_for("*")]

    def policy_for(self, tool: str) -> "ToolPolicy":
        """The policy of ``tool`` (full name): an exact pattern wins, else the longest that matches.

        Of two that are equally specific, the agent's own wins over its connection's, then the
        stricter over the other. A tool that no pattern names gets the strictest one: a write that
        needs ``tools.approve``. A delegation is gated by its exact name alone: what a child session
        does, its own agent's policies decide.
        """
        if tool == DELEGATE:
            own = (policy for policy in self.tools.all() if policy.pattern == tool)
            return next(own, None) or ToolPolicy(
                agent=self,
                pattern=tool,
                effect=ToolPolicy.Effect.IDEMPOTENT,
                needs_approval=False,
            )
        return most_specific(self.policies(), tool) or ToolPolicy(agent=self, pattern=tool)

    def connection_of(self, tool: str) -> Connection | None:
        """The enabled connection that ``tool`` (full name) comes from."""
        prefix = tool.partition("__")[0]
        rows = (row for row in self.connections.all() if row.enabled and row.name == prefix)
        return next(rows, None)

    def source_of(self, tool: str) -> str:
        """What stands for the program or server that ``tool`` comes from; "" when it has none."""
        connection = self.connection_of(tool)
        return connection.stamp() if connection else ""


def with_lent(own: "list[ToolPolicy]", connections: list[Connection]) -> "list[ToolPolicy]":
    """An agent's ``own`` policies, and those of its ``connections`` for other patterns."""
    taken = {policy.pattern for policy in own}
    lent = [
        policy
        for connection in connections
        for policy in connection.tools.all()
        if policy.pattern not in taken and policy.pattern.startswith(connection.prefix)
    ]
    return own + lent


def most_specific(policies: "list[ToolPolicy]", tool: str) -> "ToolPolicy | None":
    """The one that holds for ``tool``; None when none names it. See `Agent.policy_for`."""
    matching = [p for p in policies if fnmatch.fnmatchcase(tool, p.pattern)]
    return max(
        matching,
        key=lambda p: (
            p.pattern == tool,
            len(p.pattern.rstrip("*")),
            p.agent_id is not None or p.connection_id is None,
            p.needs_approval,
            STRICTNESS.index(p.effect),
        ),
        default=None,
    )


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
        ESCALATE = "escalate", "Ask the next in line, then do not run it"

    agent = models.ForeignKey(
        Agent, null=True, blank=True, related_name="tools", on_delete=models.CASCADE
    )
    connection = models.ForeignKey(
        Connection, null=True, blank=True, related_name="tools", on_delete=models.CASCADE
    )
    pattern = models.CharField(
        max_length=160,
        help_text="A tool's full name, like shop__issue_refund, or a pattern, like shop__*.",
    )
    enabled = models.BooleanField(
        default=True, help_text="Whether agents are offered it; one that is off is never called."
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
    approve_n = models.PositiveSmallIntegerField(
        "approvals needed", default=1, validators=[MinValueValidator(1), MaxValueValidator(20)]
    )
    deny_m = models.PositiveSmallIntegerField(
        "rejections that end it",
        default=1,
        validators=[MinValueValidator(1), MaxValueValidator(20)],
    )
    four_eyes = models.BooleanField(
        default=False,
        help_text="Who started the session, who wrote to it last, and their delegates may not decide.",
    )
    reason_on_approve = models.BooleanField("reason needed to approve", default=False)
    reason_on_reject = models.BooleanField("reason needed to reject", default=True)
    editable = models.BooleanField(
        "arguments may be edited", default=False, help_text="An approver may change what will run."
    )
    validity = models.DurationField(
        null=True,
        blank=True,
        validators=[MinValueValidator(timedelta(seconds=1))],
        help_text="How long an approval stays good until the tool starts; empty for without end.",
    )
    reminders = models.JSONField(
        default=list, blank=True, help_text='How long before the deadline to remind: ["10m", "2m"]'
    )
    escalation = models.JSONField(
        default=list,
        blank=True,
        help_text="Who is asked next when nobody answered, and how much longer: "
        '[{"permission": "refunds.lead", "deadline": "30m"}]',
    )
    timeout = models.DurationField(
        default=timedelta(minutes=2),
        validators=[MinValueValidator(timedelta(seconds=1))],
        help_text="How long one call may take, as hours:minutes:seconds.",
    )
    schedule_to_start = models.DurationField(
        null=True,
        blank=True,
        validators=[SECOND],
        help_text="How long it may wait for a free slot before it is given up; empty for 10 minutes.",
    )
    heartbeat = models.DurationField(
        null=True,
        blank=True,
        validators=[SECOND],
        help_text="How long its worker may give no sign of life; empty for the installation's own.",
    )
    attempts = models.PositiveSmallIntegerField(
        null=True,
        blank=True,
        validators=ATTEMPTS,
        help_text="How often it is tried; empty for 3. What writes and may not be repeated is tried "
        "once.",
    )
    backoff = models.DurationField(
        null=True,
        blank=True,
        validators=[SECOND],
        help_text="The wait before it is tried again, doubling; empty for 1 second.",
    )
    pool = models.SlugField(
        max_length=40, blank=True, help_text="Whose workers run it; empty for the agent's pool."
    )

    class Meta:
        ordering = ["pattern"]
        verbose_name_plural = "tool policies"
        constraints = [
            models.UniqueConstraint(fields=["agent", "pattern"], name="one_policy_per_pattern"),
            models.UniqueConstraint(
                fields=["connection", "pattern"], name="one_policy_per_connection_pattern"
            ),
            models.CheckConstraint(
                name="policy_of_an_agent_or_a_connection",
                condition=models.Q(agent__isnull=False, connection__isnull=True)
                | models.Q(agent__isnull=True, connection__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return self.pattern

    def clean(self) -> None:
        if self.connection and not self.pattern.startswith(self.connection.prefix):
            raise ValidationError(
                {"pattern": f"A tool of this connection begins with {self.connection.prefix}"}
            )
        if self.needs_approval and not self.permission:
            raise ValidationError({"permission": "Say which permission a person needs to decide."})
        if self.at_deadline == self.AtDeadline.APPROVE and self.effect == self.Effect.WRITE:
            raise ValidationError(
                {
                    "at_deadline": "A write never runs because nobody answered. Choose “Do not run it”."
                }
            )
        if self.effect == self.Effect.WRITE and (self.attempts or 1) > 1:
            raise ValidationError(
                {
                    "attempts": "A write is never run twice by itself. Leave this empty, or call the "
                    "tool idempotent if it is safe to repeat."
                }
            )
        self._clean_reminders()
        self._clean_escalation()

    def _clean_reminders(self) -> None:
        if not isinstance(self.reminders, list):
            raise ValidationError({"reminders": 'Give a list of durations, like ["10m", "2m"].'})
        try:
            list(map(parse_duration, self.reminders))
        except ValueError as error:
            raise ValidationError({"reminders": str(error)}) from None

    def _clean_escalation(self) -> None:
        example = '[{"permission": "refunds.lead", "deadline": "30m"}]'
        steps = self.escalation
        if not isinstance(steps, list) or len(steps) > MOST_ESCALATIONS:
            raise ValidationError(
                {"escalation": f"Give a list of at most {MOST_ESCALATIONS} steps, like {example}."}
            )
        for step in steps:
            if not isinstance(step, dict) or set(step) != {"permission", "deadline"}:
                raise ValidationError({"escalation": f"Write each step like {example}."})
            try:
                PERMISSION_KEY(str(step["permission"]))
                parse_duration(step["deadline"])
            except (ValueError, ValidationError) as error:
                raise ValidationError({"escalation": f"{step}: {error}"}) from None
        if self.at_deadline == self.AtDeadline.ESCALATE and not steps:
            raise ValidationError({"escalation": f"Say who is asked next, like {example}."})
