"""Agents, connections and credentials. A secret's value is never shown."""

from typing import Any
from urllib.parse import urlsplit, urlunsplit

from django.db import transaction
from django.db.models import F
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from approvals_app.audit_changes import record_change, snapshot
from sessions_app.api.idempotency import once
from sessions_app.api.schema import CONFLICTS, OPERATION, PROBLEMS
from sessions_app.api.serializers import StrictSerializer
from sessions_app.api.views import ApiView
from sessions_app.models import Agent, Connection, Credential, ToolPolicy


class ToolPolicySerializer(serializers.ModelSerializer[ToolPolicy]):
    class Meta:
        model = ToolPolicy
        fields = [
            "pattern",
            "enabled",
            "effect",
            "needs_approval",
            "permission",
            "risk",
            "deadline",
            "at_deadline",
            "approve_n",
            "deny_m",
            "four_eyes",
            "reason_on_approve",
            "reason_on_reject",
            "editable",
            "validity",
            "reminders",
            "escalation",
            "timeout",
            "schedule_to_start",
            "heartbeat",
            "attempts",
            "backoff",
            "pool",
        ]
        read_only_fields = fields


class AgentSerializer(serializers.ModelSerializer[Agent]):
    credential = serializers.SlugRelatedField("name", read_only=True, allow_null=True)
    connections = serializers.SlugRelatedField("name", many=True, read_only=True)
    tools = ToolPolicySerializer(many=True, read_only=True)

    class Meta:
        model = Agent
        fields = [
            "name",
            "title",
            "model",
            "credential",
            "connections",
            "delegates",
            "pool",
            "model_timeout",
            "model_schedule_to_start",
            "model_heartbeat",
            "model_attempts",
            "model_backoff",
            "model_calls_per_turn",
            "parallel_calls",
            "tools",
            "enabled",
            "revision",
            "updated_at",
        ]
        read_only_fields = fields


class ConnectionSerializer(serializers.ModelSerializer[Connection]):
    """Values of the environment and of headers are never shown, nor is what a URL may carry."""

    program = serializers.SerializerMethodField()
    env = serializers.SerializerMethodField()
    url = serializers.SerializerMethodField()
    headers = serializers.SerializerMethodField()
    credential = serializers.SlugRelatedField("name", read_only=True, allow_null=True)
    tools = ToolPolicySerializer(many=True, read_only=True)

    class Meta:
        model = Connection
        fields = [
            "name",
            "transport",
            "program",
            "env",
            "url",
            "headers",
            "credential",
            "tools",
            "enabled",
            "revision",
            "updated_at",
        ]
        read_only_fields = fields

    def get_program(self, connection: Connection) -> str:
        """The first word of the command; the others may hold a secret."""
        words = connection.command
        return str(words[0]) if isinstance(words, list) and words else ""

    def get_env(self, connection: Connection) -> list[str]:
        return _names(connection.env)

    def get_headers(self, connection: Connection) -> list[str]:
        return _names(connection.headers)

    def get_url(self, connection: Connection) -> str:
        parts = urlsplit(connection.url)
        host = parts.netloc.rpartition("@")[2]
        return urlunsplit((parts.scheme, host, parts.path, "", ""))


def _names(value: Any) -> list[str]:
    return sorted(value) if isinstance(value, dict) else []


class CredentialSerializer(serializers.ModelSerializer[Credential]):
    """``readable``: false where the key it was stored with is not among those in force."""

    readable = serializers.BooleanField(read_only=True)

    class Meta:
        model = Credential
        fields = [
            "name",
            "last_four",
            "readable",
            "base_url",
            "enabled",
            "revision",
            "created_at",
            "updated_at",
        ]
        read_only_fields = fields


class SetCredentialSerializer(StrictSerializer):
    name = serializers.SlugField(max_length=80)
    value = serializers.CharField(max_length=16 * 1024, trim_whitespace=True, write_only=True)
    base_url = serializers.URLField(max_length=200, required=False, allow_blank=True)


class AgentList(ApiView):
    reads = ("sessions_app.view_agent",)
    serializer_class = AgentSerializer
    keyset = ("name",)

    @extend_schema(
        operation_id="agents_list", responses={200: AgentSerializer(many=True), **PROBLEMS}
    )
    def get(self, request: Request) -> Response:
        """Agents, with the policies of their tools."""
        rows = Agent.objects.select_related("credential").defer("credential__value")
        return self.page(rows.prefetch_related("connections", "tools"))


class ConnectionList(ApiView):
    reads = ("sessions_app.view_connection",)
    serializer_class = ConnectionSerializer
    keyset = ("name",)

    @extend_schema(
        operation_id="connections_list",
        responses={200: ConnectionSerializer(many=True), **PROBLEMS},
    )
    def get(self, request: Request) -> Response:
        """MCP servers, the sources of tools."""
        rows = Connection.objects.select_related("credential").defer("credential__value")
        return self.page(rows.prefetch_related("tools"))


class CredentialList(ApiView):
    serializer_class = CredentialSerializer
    keyset = ("name",)

    @property
    def reads(self) -> tuple[str, ...]:
        """To store one, nobody needs to see the others; `_store` asks for what it needs."""
        posted = self.request.method == "POST"
        return () if posted else ("sessions_app.view_credential",)

    @extend_schema(
        operation_id="credentials_list",
        responses={200: CredentialSerializer(many=True), **PROBLEMS},
    )
    def get(self, request: Request) -> Response:
        """Credentials without their values."""
        return self.page(Credential.objects.sealed())

    @extend_schema(
        operation_id="credentials_set",
        request=SetCredentialSerializer,
        responses={200: CredentialSerializer, 201: CredentialSerializer, **PROBLEMS, **CONFLICTS},
        **OPERATION,
    )
    def post(self, request: Request) -> Response:
        """Store a secret under a name, replacing the one that is there. It is never shown again."""
        return once(self, self._store)

    def _store(self, request_id: str) -> Response:
        body = SetCredentialSerializer(data=self.request.data)
        body.is_valid(raise_exception=True)
        asked = body.validated_data
        with transaction.atomic():
            present = (
                Credential.objects.select_for_update().without_value().filter(name=asked["name"])
            ).first()
            needed = "change" if present else "add"
            if not self.request.user.has_perm(f"sessions_app.{needed}_credential"):
                raise PermissionDenied(
                    f"This needs the permission sessions_app.{needed}_credential."
                )
            before = snapshot(present) if present else {}
            credential = present or Credential(name=asked["name"])
            credential.value = asked["value"]
            credential.base_url = asked.get("base_url", credential.base_url)
            if present:
                credential.revision = F("revision") + 1
            credential.save()
            credential = Credential.objects.sealed().get(pk=credential.pk)
            user = self.request.user
            record_change(user, credential, before, snapshot(credential), ["value"])
        return Response(CredentialSerializer(credential).data, status=200 if present else 201)
