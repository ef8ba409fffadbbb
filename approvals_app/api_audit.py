"""Over REST: the audit log, and the receipt of one approval."""

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from approvals_app.api import ApprovalView
from approvals_app.audit import SURFACES
from approvals_app.audit_search import NAMES, ORDER, AuditFilters
from approvals_app.models import AuditEntry
from approvals_app.receipt import receipt_of
from sessions_app.api.schema import PROBLEMS
from sessions_app.api.views import ApiView


class AuditEntrySerializer(serializers.ModelSerializer[AuditEntry]):
    """``via``: page, api:token, api:session, admin, command or system; ``hash`` is over the rest."""

    actor = serializers.CharField(source="actor_name", read_only=True)
    via = serializers.ChoiceField(list(SURFACES), read_only=True)
    session = serializers.CharField(source="session_id", read_only=True)
    detail = serializers.DictField(read_only=True)

    class Meta:
        model = AuditEntry
        fields = [
            "seq",
            "at",
            "actor",
            "via",
            "action",
            "subject",
            "session",
            "detail",
            "previous_hash",
            "hash",
        ]
        read_only_fields = fields


class AuditList(ApiView):
    reads = ("approvals_app.view_auditentry",)
    serializer_class = AuditEntrySerializer
    keyset = ORDER

    @extend_schema(
        operation_id="audit_list",
        parameters=[
            OpenApiParameter("actor", str, description="A user's name"),
            OpenApiParameter("action", str, description="decision.approve, or all of decision"),
            OpenApiParameter("subject", str, description="Like interrupt:apr-1 or agent:desk"),
            OpenApiParameter("session", str, description="A session's id"),
            OpenApiParameter("since", str, description="A day or a moment, itself included"),
            OpenApiParameter("until", str, description="A day or a moment, itself included"),
        ],
        responses={200: AuditEntrySerializer(many=True), **PROBLEMS},
    )
    def get(self, request: Request) -> Response:
        """What people did and tried, newest first."""
        filters = AuditFilters.read({name: request.query_params.get(name, "") for name in NAMES})
        if filters.ignored:
            raise serializers.ValidationError(
                {name: "This cannot be understood." for name in filters.ignored}
            )
        return self.page(filters.select())


class ReceiptAskedSerializer(serializers.Serializer[Any]):
    tool = serializers.CharField()
    effect = serializers.CharField()
    step = serializers.CharField()
    call_id = serializers.CharField()
    at = serializers.DateTimeField()
    asked_by_step = serializers.CharField(allow_blank=True)


class ReceiptPolicySerializer(serializers.Serializer[Any]):
    version = serializers.IntegerField()
    permission = serializers.CharField()
    risk = serializers.CharField()
    approve_n = serializers.IntegerField()
    deny_m = serializers.IntegerField()
    four_eyes = serializers.BooleanField()


class ReceiptVoteSerializer(serializers.Serializer[Any]):
    by = serializers.CharField()
    on_behalf_of = serializers.CharField(allow_blank=True)
    verdict = serializers.CharField()
    revision = serializers.IntegerField()
    edited = serializers.BooleanField()
    reason = serializers.CharField(allow_blank=True)
    at = serializers.DateTimeField()


class ReceiptDecidedSerializer(serializers.Serializer[Any]):
    state = serializers.CharField()
    at = serializers.DateTimeField()
    by = serializers.CharField(allow_blank=True)
    args_hash = serializers.CharField(allow_blank=True)
    revision = serializers.IntegerField()
    edited_by = serializers.CharField(allow_blank=True)
    votes = ReceiptVoteSerializer(many=True)


class ReceiptRanSerializer(serializers.Serializer[Any]):
    args_hash = serializers.CharField(allow_blank=True)
    at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)
    attempts = serializers.IntegerField()
    outcome = serializers.CharField(allow_blank=True)


class ReceiptSerializer(serializers.Serializer[Any]):
    """``equal``: what ran is what was approved; null where nothing ran."""

    interrupt_id = serializers.CharField()
    session_id = serializers.CharField()
    asked = ReceiptAskedSerializer()
    policy = ReceiptPolicySerializer()
    decided = ReceiptDecidedSerializer(allow_null=True)
    ran = ReceiptRanSerializer(allow_null=True)
    equal = serializers.BooleanField(allow_null=True)


class ReceiptView(ApprovalView):
    serializer_class = ReceiptSerializer

    @extend_schema(operation_id="approvals_receipt", responses={200: ReceiptSerializer, **PROBLEMS})
    def get(self, request: Request, interrupt_id: str) -> Response:
        """What was asked, approved by whom, and run, with the hashes of each."""
        return Response(receipt_of(self.get_interrupt()).as_json())
