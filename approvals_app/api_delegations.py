"""Delegations over REST: what one gave and got, handing over, and taking back."""

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from approvals_app import audit, delegations
from approvals_app.models import Delegation
from sessions_app.api.filters import choice
from sessions_app.api.idempotency import once
from sessions_app.api.permissions import VIEW_INTERRUPT
from sessions_app.api.schema import CONFLICTS, OPERATION, PROBLEMS
from sessions_app.api.serializers import StrictSerializer
from sessions_app.api.views import ApiView


class DelegationSerializer(serializers.ModelSerializer[Delegation]):
    giver = serializers.CharField(source="giver.username", read_only=True)
    receiver = serializers.CharField(source="receiver.username", read_only=True)
    state = serializers.SerializerMethodField()

    class Meta:
        model = Delegation
        fields = [
            "id",
            "giver",
            "receiver",
            "key",
            "reason",
            "starts_at",
            "ends_at",
            "revoked_at",
            "created_at",
            "state",
        ]
        read_only_fields = fields

    def get_state(self, row: Delegation) -> str:
        """One of in force, planned, without effect, ended, revoked."""
        return delegations.state_of(row)


class GiveSerializer(StrictSerializer):
    """``starts_at`` is now where it is left out; at most 30 days lie between it and ``ends_at``."""

    receiver = serializers.CharField(max_length=150)
    key = serializers.CharField(max_length=100)
    reason = serializers.CharField(max_length=delegations.REASON_LENGTH)
    starts_at = serializers.DateTimeField(required=False, allow_null=True, default=None)
    ends_at = serializers.DateTimeField()


class DelegationList(ApiView):
    reads = (VIEW_INTERRUPT,)
    serializer_class = DelegationSerializer
    keyset = ("-id",)

    @extend_schema(
        operation_id="delegations_list",
        parameters=[OpenApiParameter("direction", str, enum=["given", "received"])],
        responses={200: DelegationSerializer(many=True), **PROBLEMS},
    )
    def get(self, request: Request) -> Response:
        """What you gave and got, newest first."""
        direction = choice(request, "direction", ("given", "received"))
        return self.page(delegations.of(request.user, direction))

    @extend_schema(
        operation_id="delegations_create",
        request=GiveSerializer,
        responses={201: DelegationSerializer, **PROBLEMS, **CONFLICTS},
        **OPERATION,
    )
    def post(self, request: Request) -> Response:
        """Hand a permission key of your own to somebody for a time."""
        return once(self, self._give)

    def _give(self, request_id: str) -> Response:
        serializer = GiveSerializer(data=self.request.data)
        serializer.is_valid(raise_exception=True)
        asked = delegations.Handed(**serializer.validated_data)
        with audit.via("api"):
            row = delegations.give(self.request.user, asked)
        return Response(DelegationSerializer(row).data, status=201)


class RevokeDelegation(ApiView):
    reads = (VIEW_INTERRUPT,)
    serializer_class = DelegationSerializer

    @extend_schema(
        operation_id="delegations_revoke",
        request=None,
        responses={200: DelegationSerializer, **PROBLEMS, **CONFLICTS},
        **OPERATION,
    )
    def post(self, request: Request, delegation_id: int) -> Response:
        """Take back what you gave, or give back what you got."""
        return once(self, self._revoke)

    def _revoke(self, request_id: str) -> Response:
        with audit.via("api"):
            row = delegations.revoke(self.request.user, self.kwargs["delegation_id"])
        data: dict[str, Any] = dict(DelegationSerializer(row).data)
        return Response(data)
