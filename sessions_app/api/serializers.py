"""Sessions and what is in them, as the API shows and takes them."""

from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from sessions_app.api.renderers import RawJSON
from sessions_app.limits import limits_of, meters_of
from sessions_app.models import AgentEvent, Message, Session, Step, ToolCall
from sessions_app.models.spend import CURRENCY
from sessions_app.runs import runs_of
from sessions_app.session_settings import effective
from sessions_app.spend.summary import limit_of

# A list shows the beginning of a long text; the Step itself shows all of it.
PREVIEW = 4096
SHOWN_LIMITS = ("model_calls_per_turn", "parallel_calls", "message_bytes")


class StrictSerializer(serializers.Serializer[Any]):
    """Refuses what it does not know, so that nobody believes that an ignored field had an effect.

    Who acts is never among the fields: that is whoever signed in.
    """

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, dict):
            unknown = sorted(str(name) for name in data if name not in self.fields)
            if unknown:
                known = ", ".join(self.fields)
                raise serializers.ValidationError(
                    {
                        name: [f"This is no field of this request; it takes {known}."]
                        for name in unknown
                    }
                )
        return super().to_internal_value(data)


@extend_schema_field({"description": "Any JSON value; numbers are exact"})
class ExactJSONField(serializers.Field[Any, Any, Any, Any]):
    """Stored JSON text as JSON, digit for digit; null when the text is not JSON."""

    def to_representation(self, value: str) -> RawJSON | None:
        return raw_or_none(value)


def raw_or_none(text: str) -> RawJSON | None:
    try:
        return RawJSON(text)
    except ValueError:
        return None


class SpendSerializer(serializers.Serializer[Session]):
    """``unknown``: the price of some calls is not known, and they are not in ``amount``."""

    amount = serializers.DecimalField(source="spend", max_digits=14, decimal_places=6)
    currency = serializers.SerializerMethodField()
    unknown = serializers.BooleanField(source="spend_unknown")
    input_tokens = serializers.IntegerField()
    output_tokens = serializers.IntegerField()
    model_calls = serializers.IntegerField()

    def get_currency(self, session: Session) -> str:
        return CURRENCY


class SessionSerializer(serializers.ModelSerializer[Session]):
    """A line of the list."""

    agent = serializers.SlugRelatedField("name", read_only=True)
    started_by = serializers.SlugRelatedField("username", read_only=True, allow_null=True)
    spend = SpendSerializer(source="*", read_only=True)

    class Meta:
        model = Session
        fields = [
            "id",
            "title",
            "agent",
            "status",
            "phase",
            "waiting",
            "unknown_outcomes",
            "turn",
            "spend",
            "labels",
            "last_seq",
            "started_by",
            "created_at",
            "updated_at",
            "closed_at",
            "close_reason",
            "stuck",
        ]
        read_only_fields = fields


class SpendWithLimitSerializer(SpendSerializer):
    """``limit``: of the tightest budget of the session itself, its raises included; null for none.

    ``counted`` is what counts for it: ``amount``, and calls whose cost never became known.
    """

    limit = serializers.SerializerMethodField()
    counted = serializers.SerializerMethodField()

    def get_limit(self, session: Session) -> str | None:
        return self._standing(session)[1]

    def get_counted(self, session: Session) -> str | None:
        return self._standing(session)[0]

    def _standing(self, session: Session) -> tuple[str | None, str | None]:
        if not hasattr(self, "_found"):
            found = limit_of(session)
            self._found = (str(found[0]), str(found[1])) if found else (None, None)
        return self._found


class MeterSerializer(serializers.Serializer[Any]):
    """``limit`` is null where it is not known."""

    used = serializers.IntegerField()
    limit = serializers.IntegerField(allow_null=True)


class LimitsSerializer(serializers.Serializer[Any]):
    """Bounds, and how far the session has come towards those that it moves towards."""

    model_calls_per_turn = serializers.IntegerField()
    parallel_calls = serializers.IntegerField()
    message_bytes = serializers.IntegerField()
    context_tokens = MeterSerializer()
    model_calls = MeterSerializer()
    history_events = MeterSerializer()
    history_bytes = MeterSerializer()


class RunSerializer(serializers.Serializer[Any]):
    """``previous`` and ``next`` are the runs beside it, or empty."""

    run_id = serializers.CharField()
    current = serializers.BooleanField()
    previous = serializers.CharField(allow_blank=True)
    next = serializers.CharField(allow_blank=True)


class SessionDetailSerializer(SessionSerializer):
    spend = SpendWithLimitSerializer(source="*", read_only=True)
    parent = serializers.CharField(source="parent_id", read_only=True, allow_null=True)
    children = serializers.SerializerMethodField()
    limits = serializers.SerializerMethodField()
    runs = serializers.SerializerMethodField()

    class Meta(SessionSerializer.Meta):
        fields = [
            *SessionSerializer.Meta.fields,
            "parent",
            "children",
            "limits",
            "runs",
            "retained_from",
        ]
        read_only_fields = fields

    @extend_schema_field(LimitsSerializer)
    def get_limits(self, session: Session) -> dict[str, Any]:
        limits = asdict(limits_of(session))
        meters = {one.key: {"used": one.used, "limit": one.limit} for one in meters_of(session)}
        return {name: limits[name] for name in SHOWN_LIMITS} | meters

    @extend_schema_field(serializers.ListField(child=serializers.CharField()))
    def get_children(self, session: Session) -> list[str]:
        """Those that it delegated to, oldest first."""
        return list(session.children.order_by("created_at", "id").values_list("pk", flat=True))

    @extend_schema_field(RunSerializer(many=True))
    def get_runs(self, session: Session) -> list[dict[str, Any]]:
        """Oldest first; the last is the one that goes on."""
        return [asdict(run) for run in runs_of(session)]


class StepSerializer(serializers.ModelSerializer[Step]):
    """A line of the list: ``text`` and ``reasoning`` are their first 4,096 characters."""

    text = serializers.CharField(source="text_start", read_only=True)
    reasoning = serializers.CharField(source="reasoning_start", read_only=True)

    class Meta:
        model = Step
        fields = [
            "step_id",
            "type",
            "turn",
            "position",
            "status",
            "outcome",
            "causes",
            "attempt",
            "next_attempt_at",
            "call_id",
            "tool",
            "detail",
            "text",
            "reasoning",
            "model",
            "input_tokens",
            "output_tokens",
            "cost",
            "scheduled_at",
            "started_at",
            "ended_at",
        ]
        read_only_fields = fields


class ToolCallSerializer(serializers.ModelSerializer[ToolCall]):
    args = ExactJSONField(read_only=True)
    args_json = serializers.CharField(source="args", read_only=True)
    child = serializers.CharField(source="child_id", read_only=True, allow_null=True)

    class Meta:
        model = ToolCall
        fields = [
            "call_id",
            "tool",
            "child",
            "effect",
            "args",
            "args_json",
            "args_hash",
            "outcome",
            "words",
            "result",
            "attempts",
            "requested_at",
            "started_at",
            "ended_at",
        ]
        read_only_fields = fields


class StepDetailSerializer(StepSerializer):
    text = serializers.CharField(read_only=True)
    reasoning = serializers.CharField(read_only=True)
    call = serializers.SerializerMethodField()

    class Meta(StepSerializer.Meta):
        fields = [*StepSerializer.Meta.fields, "call"]
        read_only_fields = fields

    @extend_schema_field(ToolCallSerializer(allow_null=True))
    def get_call(self, step: Step) -> Any:
        call = (
            ToolCall.objects.filter(session_id=step.session_id, call_id=step.call_id).first()
            if step.call_id
            else None
        )
        return ToolCallSerializer(call).data if call else None


class MessageSerializer(serializers.ModelSerializer[Message]):
    id = serializers.CharField(source="message_id", read_only=True)
    author = serializers.CharField(source="author_name", read_only=True)
    edited_by = serializers.CharField(source="edited_by_name", read_only=True)

    class Meta:
        model = Message
        fields = ["id", "text", "author", "edited_by", "state", "turn", "before_step", "created_at"]
        read_only_fields = fields


class EventSerializer(serializers.ModelSerializer[AgentEvent]):
    class Meta:
        model = AgentEvent
        fields = ["seq", "type", "step_id", "attempt", "payload", "at"]
        read_only_fields = fields


class EventPageSerializer(serializers.Serializer[Any]):
    """``trimmed`` are ranges that were live only; ``next`` is null at the newest event."""

    results = EventSerializer(many=True)
    next = serializers.URLField(allow_null=True)
    previous = serializers.URLField(allow_null=True)
    trimmed = serializers.ListField(child=serializers.ListField(child=serializers.IntegerField()))
    last_seq = serializers.IntegerField()
    retained_from = serializers.IntegerField()


class StartSessionSerializer(StrictSerializer):
    agent = serializers.CharField(max_length=60)
    # Blank and too long are the action's to judge, in the words that every surface has.
    message = serializers.CharField(trim_whitespace=False, allow_blank=True)
    title = serializers.CharField(max_length=200, required=False, allow_blank=True, default="")
    labels = serializers.DictField(
        child=serializers.CharField(max_length=200), required=False, default=dict
    )
    settings = serializers.DictField(required=False, default=dict)

    def validate_labels(self, labels: dict[str, str]) -> dict[str, str]:
        if len(labels) > 32:
            raise serializers.ValidationError("A session takes at most 32 labels.")
        plain = serializers.CharField(max_length=63)
        return {plain.run_validation(name): text for name, text in labels.items()}


class SendMessageSerializer(StrictSerializer):
    text = serializers.CharField(trim_whitespace=False, allow_blank=True)


class NothingSerializer(StrictSerializer):
    """The request takes nothing."""


class CancelTurnSerializer(StrictSerializer):
    reason = serializers.CharField(max_length=2000, required=False, allow_blank=True, default="")


class RaiseSpendSerializer(StrictSerializer):
    # What is an amount is the action's to judge, in the words that every surface has.
    amount = serializers.CharField(max_length=40, help_text="US dollars, as text or number")


class StopSerializer(StrictSerializer):
    kind = serializers.ChoiceField(["complete", "cancel", "terminate", "fail"])
    reason = serializers.CharField(max_length=2000, required=False, allow_blank=True, default="")


class RpcAnswerSerializer(serializers.Serializer[Any]):
    """What was made or changed, and when."""

    id = serializers.CharField()
    at = serializers.CharField()
    state = serializers.CharField(allow_blank=True)


class UpdateSettingsSerializer(StrictSerializer):
    revision = serializers.IntegerField(min_value=0)
    # What is in it is the action's to judge, in the words that every surface has.
    patch = serializers.DictField()


class SessionSettingsSerializer(serializers.Serializer[Session]):
    """``changes`` is what differs from the agent; the others are what the next turn begins with."""

    agent = serializers.CharField(source="agent.name")
    agent_revision = serializers.IntegerField(source="agent.revision")
    revision = serializers.IntegerField(source="settings_revision")
    pool = serializers.CharField(source="agent.pool")
    changes = serializers.DictField(source="settings")
    model = serializers.SerializerMethodField()
    instructions = serializers.SerializerMethodField()
    settings = serializers.SerializerMethodField()

    def get_model(self, session: Session) -> str:
        return str(effective(session.agent, session.settings)["model"])

    def get_instructions(self, session: Session) -> str:
        return str(effective(session.agent, session.settings)["instructions"])

    def get_settings(self, session: Session) -> dict[str, Any]:
        return dict(effective(session.agent, session.settings)["settings"])


class GraphPartSerializer(serializers.Serializer[Any]):
    key = serializers.CharField()
    turn = serializers.IntegerField()
    title = serializers.CharField()
    state = serializers.CharField()
    step_count = serializers.IntegerField()
    links = serializers.ListField(child=serializers.CharField())


class GraphNodeSerializer(serializers.Serializer[Any]):
    """One box; equal siblings are folded to one with several ``step_ids``."""

    id = serializers.CharField()
    part = serializers.CharField()
    step_ids = serializers.ListField(child=serializers.CharField())
    type = serializers.CharField()
    label = serializers.CharField()
    sublabel = serializers.CharField()
    state = serializers.CharField()


class GraphEdgeSerializer(serializers.Serializer[Any]):
    source = serializers.CharField()
    target = serializers.CharField()
    part = serializers.CharField()


class GraphSerializer(serializers.Serializer[Any]):
    """No edge leaves its part; a part's ``links`` say in words what goes on elsewhere."""

    parts = GraphPartSerializer(many=True)
    nodes = GraphNodeSerializer(many=True)
    edges = GraphEdgeSerializer(many=True)
    older_left_out = serializers.BooleanField()
