"""Approvals as the API shows and takes them."""

import json
from dataclasses import asdict
from decimal import Decimal
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import OpenApiTypes, extend_schema_field
from rest_framework import serializers
from rest_framework.utils.encoders import JSONEncoder

from approvals_app.deception import suspicious
from approvals_app.models import Decision, Interrupt
from approvals_app.questions import questions_of
from approvals_app.rules import may_decide_now
from sessions_app.api.renderers import RawJSON, dumps_exact
from sessions_app.api.serializers import PREVIEW, StrictSerializer, raw_or_none

#: What of the frozen policy is of use to whoever decides.
POLICY = (
    "version",
    "approve_n",
    "deny_m",
    "four_eyes",
    "reason_on_approve",
    "reason_on_reject",
    "editable",
    "validity",
    "reminders",
    "escalation",
)


class VoteSerializer(serializers.ModelSerializer[Decision]):
    """One person's decision and how far it came."""

    by = serializers.SlugRelatedField("username", source="actor", read_only=True)
    at = serializers.DateTimeField(source="created_at", read_only=True)
    delivery = serializers.ChoiceField(Decision.State.choices, source="state", read_only=True)

    on_behalf_of = serializers.SlugRelatedField("username", read_only=True, allow_null=True)
    edited = serializers.SerializerMethodField()

    class Meta:
        model = Decision
        fields = ["by", "on_behalf_of", "verdict", "revision", "edited", "reason", "at", "delivery"]
        read_only_fields = fields

    @extend_schema_field(OpenApiTypes.BOOL)
    def get_edited(self, decision: Decision) -> bool:
        return bool(decision.edited_args)


class LockSerializer(serializers.Serializer[Any]):
    """A person's name on it, for a while: others are refused until then, or take it over."""

    holder = serializers.CharField()
    kind = serializers.ChoiceField(["hold"])
    since = serializers.DateTimeField()
    until = serializers.DateTimeField()


class EscalationSerializer(serializers.Serializer[Any]):
    permission = serializers.CharField()
    deadline = serializers.FloatField()


class PolicySerializer(serializers.Serializer[Any]):
    """As it was when the agent asked; times are seconds, ``validity`` 0 is without end."""

    version = serializers.IntegerField()
    approve_n = serializers.IntegerField()
    deny_m = serializers.IntegerField()
    four_eyes = serializers.BooleanField()
    reason_on_approve = serializers.BooleanField()
    reason_on_reject = serializers.BooleanField()
    editable = serializers.BooleanField()
    validity = serializers.FloatField()
    reminders = serializers.ListField(child=serializers.FloatField())
    escalation = EscalationSerializer(many=True)


class QuestionSerializer(serializers.Serializer[Any]):
    """Without ``choices`` it is answered in one's own words, which ``free_text`` allows beside them."""

    question = serializers.CharField()
    choices = serializers.ListField(child=serializers.CharField())
    multiple = serializers.BooleanField()
    free_text = serializers.BooleanField()


class ApprovalSerializer(serializers.ModelSerializer[Interrupt]):
    """What waits for a person; ``args`` are exact, and ``args_json`` is their text.

    ``kind`` question: ``questions`` are to be answered, ``answers`` are theirs in the same order,
    null until then; it has no ``deadline``.

    A list leaves out what is longer than 4,096 characters, both null; the approval itself has it.
    """

    session = serializers.CharField(source="session_id", read_only=True)
    agent = serializers.CharField(source="session.agent.name", read_only=True)
    args = serializers.SerializerMethodField()
    args_json = serializers.SerializerMethodField()
    decided_by = serializers.CharField(source="decided_by_name", read_only=True)
    server_time = serializers.SerializerMethodField()
    lock = serializers.SerializerMethodField()
    votes = VoteSerializer(source="decisions", many=True, read_only=True)
    delivery = serializers.SerializerMethodField()
    suspicious = serializers.SerializerMethodField()
    deadline = serializers.DateTimeField(source="due", read_only=True, allow_null=True)
    questions = serializers.SerializerMethodField()
    answers = serializers.SerializerMethodField()

    class Meta:
        model = Interrupt
        fields = [
            "id",
            "session",
            "agent",
            "kind",
            "step_id",
            "call_id",
            "turn",
            "tool",
            "effect",
            "risk",
            "permission",
            "why",
            "questions",
            "answers",
            "args",
            "args_json",
            "args_hash",
            "revision",
            "state",
            "asked_at",
            "deadline",
            "at_deadline",
            "server_time",
            "decided_at",
            "decided_by",
            "reason",
            "lock",
            "votes",
            "delivery",
            "suspicious",
        ]
        read_only_fields = fields

    @extend_schema_field(OpenApiTypes.DATETIME)
    def get_server_time(self, interrupt: Interrupt) -> str:
        return timezone.now().isoformat()

    @extend_schema_field(LockSerializer(allow_null=True))
    def get_lock(self, interrupt: Interrupt) -> dict[str, Any] | None:
        """Who holds it; a hold that has run out is none."""
        if interrupt.hold_until is None or interrupt.hold_until <= timezone.now():
            return None
        return {
            "holder": interrupt.hold_by_name,
            "kind": "hold",
            "since": interrupt.hold_since,
            "until": interrupt.hold_until,
        }

    @extend_schema_field(serializers.ChoiceField(Decision.State.choices, allow_null=True))
    def get_delivery(self, interrupt: Interrupt) -> str | None:
        """How far the newest decision came, null when there is none."""
        newest = max(interrupt.decisions.all(), key=lambda row: row.pk, default=None)
        return newest.state if newest else None

    @extend_schema_field(QuestionSerializer(many=True, allow_null=True))
    def get_questions(self, interrupt: Interrupt) -> list[dict[str, Any]] | None:
        if not interrupt.is_question:
            return None
        return [asdict(question) for question in questions_of(interrupt)]

    @extend_schema_field(
        {"type": "array", "nullable": True, "items": {"type": "array", "items": {"type": "string"}}}
    )
    def get_answers(self, interrupt: Interrupt) -> list[list[str]] | None:
        return interrupt.answers or None

    @extend_schema_field({"type": "boolean", "nullable": True})
    def get_suspicious(self, interrupt: Interrupt) -> bool | None:
        """The arguments hold invisible, direction-changing or look-alike characters."""
        return _any_suspicious(interrupt.args) if self._whole(interrupt) else None

    @extend_schema_field({"description": "Any JSON value; numbers are exact", "nullable": True})
    def get_args(self, interrupt: Interrupt) -> RawJSON | None:
        return raw_or_none(interrupt.args) if self._whole(interrupt) else None

    @extend_schema_field({"type": "string", "nullable": True})
    def get_args_json(self, interrupt: Interrupt) -> str | None:
        return interrupt.args if self._whole(interrupt) else None

    def _whole(self, interrupt: Interrupt) -> bool:
        return len(interrupt.args) <= PREVIEW


class ApprovalDetailSerializer(ApprovalSerializer):
    """``original_args_json``: what the agent asked for, "" unless an approver edited it."""

    you_may_decide = serializers.SerializerMethodField()
    policy = serializers.SerializerMethodField()
    original_args_json = serializers.CharField(source="original_args", read_only=True)
    edited_by = serializers.CharField(source="edited_by_name", read_only=True)

    class Meta(ApprovalSerializer.Meta):
        fields = [
            *ApprovalSerializer.Meta.fields,
            "policy",
            "original_args_json",
            "edited_by",
            "you_may_decide",
        ]
        read_only_fields = fields

    @extend_schema_field(PolicySerializer)
    def get_policy(self, interrupt: Interrupt) -> dict[str, Any]:
        return {name: interrupt.policy[name] for name in POLICY if name in interrupt.policy}

    @extend_schema_field(OpenApiTypes.BOOL)
    def get_you_may_decide(self, interrupt: Interrupt) -> bool:
        """Whether a word of yours would be taken now: open, yours to decide, not voted on yet."""
        return may_decide_now(self.context["request"].user, interrupt)

    def _whole(self, interrupt: Interrupt) -> bool:
        return True


def _any_suspicious(args: str) -> bool:
    """Judged by the texts themselves: JSON may spell a hidden character as an escape."""
    try:
        left: list[Any] = [json.loads(args)]
    except ValueError:
        return suspicious(args)
    while left:
        value = left.pop()
        if isinstance(value, dict):
            left += [*value, *value.values()]
        elif isinstance(value, list):
            left += value
        elif isinstance(value, str) and suspicious(value):
            return True
    return False


class DecideSerializer(StrictSerializer):
    """Names exactly what was shown: ``revision`` and ``args_hash`` from the approval.

    Edited arguments to run instead are ``args``, an object, or ``args_json``, the same as text.
    """

    verdict = serializers.ChoiceField(Decision.Verdict.choices)
    revision = serializers.IntegerField(min_value=1, max_value=2**31 - 1)
    args_hash = serializers.RegexField(r"\A[0-9a-f]{64}\Z")
    reason = serializers.CharField(max_length=2000, required=False, allow_blank=True, default="")
    args = serializers.JSONField(required=False, encoder=JSONEncoder)
    args_json = serializers.CharField(required=False, trim_whitespace=False)

    def validate_args(self, args: Any) -> Any:
        if not isinstance(args, dict):
            raise serializers.ValidationError("Arguments are a JSON object.")
        return args

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """``args`` as text, every number as it was written; "" where nothing was edited."""
        text = attrs.pop("args_json", "")
        if "args" in attrs and text:
            raise serializers.ValidationError({"args_json": "Send args or args_json, not both."})
        attrs["args"] = dumps_exact(_raw_numbers(attrs["args"])) if "args" in attrs else text
        return attrs


def _raw_numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _raw_numbers(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_raw_numbers(item) for item in value]
    return RawJSON(str(value)) if isinstance(value, Decimal) else value
