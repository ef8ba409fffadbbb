"""Approvals over REST: the inbox, one of them, and deciding."""

import json
from typing import Any

from django.http import Http404
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, OpenApiTypes, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from approvals_app import decisions
from approvals_app.deception import suspicious
from approvals_app.models import Decision, Interrupt, InterruptQuerySet
from approvals_app.rules import may_decide
from dexweb.engine.errors import DexwebError
from sessions_app.api.filters import choice, flag, text
from sessions_app.api.idempotency import once
from sessions_app.api.permissions import VIEW_INTERRUPT
from sessions_app.api.renderers import RawJSON
from sessions_app.api.schema import CONFLICTS, OPERATION, PROBLEMS
from sessions_app.api.serializers import PREVIEW, StrictSerializer, raw_or_none
from sessions_app.api.views import ApiView


class VoteSerializer(serializers.ModelSerializer[Decision]):
    """One person's decision and how far it came."""

    by = serializers.SlugRelatedField("username", source="actor", read_only=True)
    at = serializers.DateTimeField(source="created_at", read_only=True)
    delivery = serializers.ChoiceField(Decision.State.choices, source="state", read_only=True)

    class Meta:
        model = Decision
        fields = ["by", "verdict", "revision", "reason", "at", "delivery"]
        read_only_fields = fields


class ApprovalSerializer(serializers.ModelSerializer[Interrupt]):
    """What waits for a person; ``args`` are exact, and ``args_json`` is their text.

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

    @extend_schema_field({"type": "object", "nullable": True})
    def get_lock(self, interrupt: Interrupt) -> None:
        """Who holds it open; nobody can yet."""
        return None

    @extend_schema_field(serializers.ChoiceField(Decision.State.choices, allow_null=True))
    def get_delivery(self, interrupt: Interrupt) -> str | None:
        """How far the newest decision came, null when there is none."""
        newest = max(interrupt.decisions.all(), key=lambda row: row.pk, default=None)
        return newest.state if newest else None

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
    you_may_decide = serializers.SerializerMethodField()

    class Meta(ApprovalSerializer.Meta):
        fields = [*ApprovalSerializer.Meta.fields, "you_may_decide"]
        read_only_fields = fields

    @extend_schema_field(OpenApiTypes.BOOL)
    def get_you_may_decide(self, interrupt: Interrupt) -> bool:
        return may_decide(self.context["request"].user, interrupt)

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
    """Names exactly what was shown: ``revision`` and ``args_hash`` from the approval."""

    verdict = serializers.ChoiceField(Decision.Verdict.values)
    revision = serializers.IntegerField(min_value=1, max_value=2**31 - 1)
    args_hash = serializers.RegexField(r"\A[0-9a-f]{64}\Z")
    reason = serializers.CharField(max_length=2000, required=False, allow_blank=True, default="")


def for_api() -> InterruptQuerySet:
    """Approvals with all that the API shows of them, in two queries."""
    return Interrupt.objects.for_list().prefetch_related("decisions__actor")


class ApprovalList(ApiView):
    reads = (VIEW_INTERRUPT,)
    serializer_class = ApprovalSerializer

    def get_keyset(self) -> tuple[str, ...]:
        """What is due first comes first; of what is over, the newest."""
        pending = self.request.query_params.get("state") == Interrupt.State.PENDING
        return ("deadline", "id") if pending else ("-deadline", "-id")

    @extend_schema(
        operation_id="approvals_list",
        parameters=[
            OpenApiParameter("state", str, enum=Interrupt.State.values),
            OpenApiParameter("session", str, description="A session's id"),
            OpenApiParameter("agent", str, description="An agent's name"),
            OpenApiParameter("tool", str),
            OpenApiParameter("permission", str),
            OpenApiParameter("mine", bool, description="Those that you may decide"),
        ],
        responses={200: ApprovalSerializer(many=True), **PROBLEMS},
    )
    def get(self, request: Request) -> Response:
        """What waits or waited for a person."""
        rows = for_api()
        if state := choice(request, "state", Interrupt.State.values):
            rows = rows.filter(state=state)
        for name, field in (
            ("session", "session_id"),
            ("agent", "session__agent__name"),
            ("tool", "tool"),
            ("permission", "permission"),
        ):
            if value := text(request, name):
                rows = rows.filter(**{field: value})
        if flag(request, "mine"):
            rows = rows.decidable_by(request.user)
        return self.page(rows)


class ApprovalView(ApiView):
    reads = (VIEW_INTERRUPT,)
    serializer_class = ApprovalDetailSerializer

    def get_interrupt(self) -> Interrupt:
        """The row that the address names, as it stands now. Raises `Http404`."""
        try:
            return for_api().get(pk=self.kwargs["interrupt_id"])
        except Interrupt.DoesNotExist as error:
            raise Http404 from error

    def shown(self) -> dict[str, Any]:
        context = {"request": self.request}
        return dict(ApprovalDetailSerializer(self.get_interrupt(), context=context).data)


class ApprovalDetail(ApprovalView):
    @extend_schema(
        operation_id="approvals_retrieve", responses={200: ApprovalDetailSerializer, **PROBLEMS}
    )
    def get(self, request: Request, interrupt_id: str) -> Response:
        """One approval. Reading never decides."""
        return Response(self.shown())


class Decide(ApprovalView):
    serializer_class = DecideSerializer

    @extend_schema(
        operation_id="approvals_decide",
        request=DecideSerializer,
        responses={200: ApprovalDetailSerializer, **PROBLEMS, **CONFLICTS},
        **OPERATION,
    )
    def post(self, request: Request, interrupt_id: str) -> Response:
        """Approve or reject exactly what was shown. A 409 has the fresh state as ``interrupt``."""
        return once(self, self._decide)

    def _decide(self, request_id: str) -> Response:
        self.get_interrupt()
        asked = self.read_body(self.request)
        decisions.decide(
            self.request.user,
            self.kwargs["interrupt_id"],
            verdict=asked["verdict"],
            revision=asked["revision"],
            args_hash=asked["args_hash"],
            reason=asked["reason"],
            request_id=request_id,
        )
        return Response(self.shown())

    def handle_exception(self, error: Exception) -> Response:
        """A conflict, and a decision that is only kept, say how the approval stands now."""
        response = super().handle_exception(error)
        if isinstance(error, DexwebError) and response.status_code in (409, 503):
            response.data["interrupt"] = self.shown()
        return response
