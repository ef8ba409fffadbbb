"""Sessions as the Flow's projection. Only `sessions_app.projection` writes these rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.functional import cached_property

from dexweb.engine.errors import EngineStateUnreadable

if TYPE_CHECKING:
    from sessions_app.models.summaries import ContextSummary


class SessionQuerySet(models.QuerySet["Session"]):
    def for_list(self) -> SessionQuerySet:
        """One row a session, newest first, with what a line of the list shows."""
        rows = self.select_related("agent", "started_by").order_by("-updated_at", "-id")
        return rows.annotate(turn_failed=_turn_failed())

    def with_failed_turn(self) -> SessionQuerySet:
        """Those that wait for a message after a turn that failed."""
        idle = self.filter(status=Session.Status.RUNNING, phase=Session.Phase.IDLE)
        return idle.filter(_turn_failed())

    def after(self, updated_at: object, session_id: str) -> SessionQuerySet:
        """The rows behind this place in the newest-first order."""
        return self.filter(
            models.Q(updated_at__lt=updated_at) | models.Q(updated_at=updated_at, id__lt=session_id)
        )


def _turn_failed() -> models.Exists:
    newest = Turn.objects.filter(session=models.OuterRef("pk"), number=models.OuterRef("turn"))
    return models.Exists(newest.filter(state="failed"))


class Session(models.Model):
    """One durable conversation with an agent; ``id`` is also the Flow id in the engine."""

    class Status(models.TextChoices):
        RUNNING = "running"
        COMPLETED = "completed"
        FAILED = "failed"
        CANCELED = "canceled"
        TERMINATED = "terminated"
        TIMED_OUT = "timed_out"

    class Phase(models.TextChoices):
        IDLE = "idle"
        THINKING = "thinking"
        ACTING = "acting"
        WAITING_APPROVAL = "waiting_approval"
        WAITING_ANSWER = "waiting_answer"
        WAITING_TIMER = "waiting_timer"
        WAITING_SPEND = "waiting_spend"
        COMPACTING = "compacting"

    id = models.CharField(primary_key=True, max_length=100)
    agent = models.ForeignKey(
        "sessions_app.Agent", on_delete=models.PROTECT, related_name="sessions"
    )
    title = models.CharField(max_length=200)
    status = models.CharField(max_length=12, choices=Status.choices, default=Status.RUNNING)
    phase = models.CharField(max_length=20, choices=Phase.choices, default=Phase.IDLE)
    waiting = models.PositiveIntegerField(default=0, help_text="Open interrupts")
    unknown_outcomes = models.PositiveIntegerField(default=0)
    turn = models.PositiveIntegerField(default=0)
    labels = models.JSONField(default=dict, blank=True)
    started_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    parent = models.ForeignKey(
        "self",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="children",
        help_text="The session that delegated to this one",
    )
    behind = models.ManyToManyField(
        settings.AUTH_USER_MODEL,
        related_name="+",
        help_text="Whose words led to it, in the sessions above it; for the rule of four eyes",
    )
    run_id = models.CharField(max_length=64, blank=True)
    settings = models.JSONField(
        default=dict, help_text="What this session changed of its agent's settings"
    )
    settings_revision = models.PositiveIntegerField(default=0)
    last_seq = models.PositiveBigIntegerField(
        default=0, help_text="Number of the newest AgentEvent"
    )
    retained_from = models.PositiveBigIntegerField(default=1)
    last_fact = models.PositiveBigIntegerField(
        default=0, help_text="Number of the newest fact recorded"
    )
    input_tokens = models.PositiveBigIntegerField(default=0)
    output_tokens = models.PositiveBigIntegerField(default=0)
    model_calls = models.PositiveIntegerField(default=0)
    spend = models.DecimalField(max_digits=14, decimal_places=6, default=0, help_text="US dollars")
    spend_raised = models.DecimalField(
        max_digits=14,
        decimal_places=6,
        default=0,
        help_text="US dollars that it may spend over its budgets",
    )
    spend_unknown = models.BooleanField(default=False, help_text="A call's price was not known")
    turn_model_calls = models.PositiveIntegerField(
        default=0, help_text="In the turn that runs, or the last one"
    )
    context_tokens = models.PositiveIntegerField(
        default=0, help_text="What the model read and wrote in its newest call"
    )
    context_window = models.PositiveIntegerField(
        null=True, help_text="How much the model can read; empty when that is not known"
    )
    history_events = models.PositiveIntegerField(
        default=0, help_text="Entries of the engine's history of the run"
    )
    history_bytes = models.PositiveBigIntegerField(default=0)
    limits = models.JSONField(default=dict, help_text="The bounds that it was started with")
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True, blank=True)
    close_reason = models.TextField(blank=True)
    stuck = models.TextField(
        blank=True, db_default="", default="", help_text="Why no worker can go on, while it is so"
    )

    #: Whether the newest turn failed, where the row was read with `for_list`.
    turn_failed = False

    objects = SessionQuerySet.as_manager()

    class Meta:
        permissions = [
            ("operate_session", "Can start, message, cancel and stop sessions"),
            ("raise_spend", "Can let a session spend more than its budgets allow"),
        ]
        indexes = [
            # The list, newest first; then the list under one status, phase or agent.
            models.Index(fields=["-updated_at", "-id"], name="session_newest"),
            models.Index(fields=["status", "-updated_at", "-id"], name="session_status_newest"),
            models.Index(fields=["phase", "-updated_at", "-id"], name="session_phase_newest"),
            models.Index(fields=["agent", "-updated_at", "-id"], name="session_agent_newest"),
        ]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        #: Numbered, and written together by `sessions_app.stream.append.write`.
        self.unwritten_events: list[AgentEvent] = []
        #: Steps read or made under this row's lock, so that none is read twice; None: not there yet.
        self.known_steps: dict[str, Step | None] = {}
        #: Likewise the turn and the messages that began under it.
        self.known_turn: Turn | None = None
        self.known_messages: dict[str, Message] = {}

    def __str__(self) -> str:
        return self.title

    @property
    def open(self) -> bool:
        return self.status == self.Status.RUNNING

    @property
    def idle_after_failure(self) -> bool:
        """Idle by its phase, which does not tell that the turn before came to nothing."""
        return self.open and self.phase == self.Phase.IDLE and self.turn_failed

    @property
    def stuck_without_key(self) -> bool:
        """Whether it is stuck because workers lack the key of its state."""
        return self.stuck == EngineStateUnreadable.why

    @cached_property
    def newest_summary(self) -> ContextSummary | None:
        """What stands for the older part of the conversation, when this row was read."""
        found: ContextSummary | None = self.summaries.last()
        return found


class Turn(models.Model):
    """From a user message to the agent's final answer, with the settings that it began with."""

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="turns")
    number = models.PositiveIntegerField()
    state = models.CharField(max_length=12, default="running")
    settings = models.JSONField(default=dict, help_text="The agent's settings when the turn began")
    changes = models.JSONField(
        default=dict, help_text="What the session had changed of them when the turn began"
    )
    detail = models.TextField(blank=True)
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["number"]
        constraints = [
            models.UniqueConstraint(fields=["session", "number"], name="turn_once_per_session")
        ]

    def __str__(self) -> str:
        return f"turn {self.number}"


class StepQuerySet(models.QuerySet["Step"]):
    def waiting_for_worker(self) -> StepQuerySet:
        """Model and tool calls that no worker has taken yet, those that wait longest first."""
        due = models.Q(next_attempt_at=None) | models.Q(next_attempt_at__lte=timezone.now())
        return (
            self.filter(
                due,
                status=Step.Status.SCHEDULED,
                type__in=["RunModel", "CallTool", "CallSingleAttemptTool"],
                session__status=Session.Status.RUNNING,
            )
            .select_related("session__agent")
            .order_by("scheduled_at", "id")
        )


class Step(models.Model):
    """One execution, ``<StepType>-<n>``: an activity, a timer or a wait."""

    class Status(models.TextChoices):
        PLANNED = "planned"
        SCHEDULED = "scheduled"
        ACTIVE = "active"
        WAITING = "waiting"
        COMPLETED = "completed"
        FAILED = "failed"
        CANCELED = "canceled"

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="steps")
    step_id = models.CharField(max_length=60)
    type = models.CharField(max_length=40)
    turn = models.PositiveIntegerField(default=0)
    position = models.PositiveIntegerField(help_text="Order of appearance in the session, from 1")
    status = models.CharField(max_length=12, choices=Status.choices)
    causes = models.JSONField(default=list, help_text="Step ids that scheduled this one")
    attempt = models.PositiveIntegerField(default=1)
    next_attempt_at = models.DateTimeField(null=True)
    call_id = models.CharField(max_length=160, blank=True)
    tool = models.CharField(max_length=200, blank=True)
    outcome = models.CharField(max_length=20, blank=True)
    detail = models.TextField(
        blank=True, help_text="In words: the error, the reason, what was decided"
    )
    text = models.TextField(blank=True, help_text="What the model said")
    reasoning = models.TextField(blank=True)
    response = models.JSONField(
        null=True, help_text="The model's response, as it goes back to the model"
    )
    model = models.CharField(max_length=160, blank=True)
    input_tokens = models.PositiveIntegerField(null=True)
    output_tokens = models.PositiveIntegerField(null=True)
    cost = models.DecimalField(max_digits=14, decimal_places=6, null=True, help_text="US dollars")
    scheduled_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    objects = StepQuerySet.as_manager()

    class Meta:
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(fields=["session", "step_id"], name="step_once_per_session"),
            models.UniqueConstraint(fields=["session", "position"], name="step_position_once"),
        ]
        indexes = [
            models.Index(fields=["session", "turn", "position"], name="step_of_turn"),
            # Steps that wait for a worker, the oldest first: few, among all that ever were.
            models.Index(
                fields=["scheduled_at"],
                name="step_waits_for_worker",
                condition=models.Q(status="scheduled"),
            ),
        ]

    def __str__(self) -> str:
        return self.step_id


class ToolCall(models.Model):
    """One call that the model asked for, from request to outcome."""

    class Outcome(models.TextChoices):
        COMPLETED = "completed"
        FAILED = "failed"
        OUTCOME_UNKNOWN = "outcome_unknown"
        REJECTED = "rejected"
        EXPIRED = "expired"
        CANCELED = "canceled"
        INVALIDATED = "invalidated"

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="calls")
    call_id = models.CharField(max_length=160)
    model_step = models.CharField(max_length=60, help_text="The RunModel Step that asked for it")
    turn = models.PositiveIntegerField()
    position = models.PositiveIntegerField(help_text="Order within the model's response, from 0")
    tool = models.CharField(max_length=200)
    effect = models.CharField(max_length=12)
    args = models.TextField(help_text="JSON text, exactly as it will be sent")
    args_hash = models.CharField(max_length=64)
    policy = models.JSONField(default=dict, help_text="The tool's policy when it was asked for")
    schema = models.JSONField(
        default=dict, help_text="The tool's JSON schema when it was asked for"
    )
    original_args = models.TextField(blank=True, help_text="What the model asked for, if edited")
    edited_by_name = models.CharField(max_length=150, blank=True)
    ran_hash = models.CharField(
        max_length=64, blank=True, help_text="Of the arguments that were sent"
    )
    outcome = models.CharField(max_length=20, choices=Outcome.choices, blank=True)
    result = models.TextField(blank=True, help_text="Up to 2 MiB, for people")
    words = models.TextField(
        blank=True, help_text="What the model was told; the same words people see"
    )
    child = models.ForeignKey(
        Session,
        null=True,
        on_delete=models.SET_NULL,
        related_name="delegations",
        help_text="The session that a delegation began",
    )
    attempts = models.PositiveIntegerField(default=0)
    begun_attempt = models.PositiveIntegerField(
        default=0, help_text="The attempt that was about to act; 0 when none was"
    )
    requested_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["session", "turn", "id"]
        constraints = [
            models.UniqueConstraint(fields=["session", "call_id"], name="call_once_per_session")
        ]
        indexes = [models.Index(fields=["session", "turn"], name="call_of_turn")]

    def __str__(self) -> str:
        return f"{self.tool} ({self.call_id})"


class Message(models.Model):
    """What a person said to the agent."""

    class State(models.TextChoices):
        QUEUED = "queued"
        STEERED = "steered"
        CONSUMED = "consumed"
        DELETED = "deleted"

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="messages")
    message_id = models.CharField(max_length=64)
    text = models.TextField()
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    author_name = models.CharField(max_length=150, blank=True)
    state = models.CharField(max_length=10, choices=State.choices, default=State.QUEUED)
    turn = models.PositiveIntegerField(null=True)
    before_step = models.CharField(
        max_length=60,
        blank=True,
        help_text="If it was steered in: the model call that read it first",
    )
    edited_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    edited_by_name = models.CharField(max_length=150, blank=True)
    edited_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(
                fields=["session", "message_id"], name="message_once_per_session"
            )
        ]

    def __str__(self) -> str:
        return self.message_id


class AgentEvent(models.Model):
    """One line of a session's live stream. ``seq`` rises by one, with no gaps at commit."""

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="events")
    seq = models.PositiveBigIntegerField()
    type = models.CharField(max_length=40)
    step_id = models.CharField(max_length=60, blank=True)
    attempt = models.PositiveIntegerField(default=0)
    payload = models.JSONField(default=dict)
    at = models.DateTimeField()

    class Meta:
        ordering = ["session", "seq"]
        constraints = [models.UniqueConstraint(fields=["session", "seq"], name="event_number_once")]
        # Trimming a Step's live-only events once it is complete.
        indexes = [models.Index(fields=["session", "step_id", "type"], name="event_of_step")]

    def __str__(self) -> str:
        return f"{self.seq} {self.type}"
