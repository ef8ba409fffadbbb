"""Pools and their workers, as the page of workers shows them."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from sessions_app.api.permissions import VIEW_SESSION
from sessions_app.api.schema import PROBLEMS
from sessions_app.api.views import ApiView
from sessions_app.models import Step, WorkerPresence
from sessions_app.workers import picture


class SlotsSerializer(serializers.Serializer[Any]):
    used = serializers.IntegerField()
    free = serializers.IntegerField()
    total = serializers.IntegerField()


class BacklogSerializer(serializers.Serializer[Any]):
    """The engine's estimates; ``oldest`` in seconds."""

    waiting = serializers.IntegerField()
    oldest = serializers.FloatField()


class PoolBacklogSerializer(serializers.Serializer[Any]):
    """``flow``: sessions that are to go on."""

    flow = BacklogSerializer()
    model = BacklogSerializer()
    tools = BacklogSerializer()


class WaitingStepSerializer(serializers.ModelSerializer[Step]):
    session = serializers.CharField(source="session_id")

    class Meta:
        model = Step
        fields = ["session", "step_id", "type", "tool", "attempt", "scheduled_at"]
        read_only_fields = fields


class WorkerSerializer(serializers.ModelSerializer[WorkerPresence]):
    """``fresh`` is false of one that said nothing for a while: it was killed or is cut off. The engine
    knows it by ``deployment``, which is empty for a worker without a version.
    """

    fresh = serializers.BooleanField()

    class Meta:
        model = WorkerPresence
        fields = [
            "id",
            "host",
            "pid",
            "version",
            "deployment",
            "fresh",
            "stopping",
            "model_used",
            "model_slots",
            "tool_used",
            "tool_slots",
            "started_at",
            "seen_at",
        ]
        read_only_fields = fields


class PoolSerializer(serializers.Serializer[Any]):
    """``missing``: an agent or a tool names it, a Step waits for it, or workers are there to which the
    engine gives nothing; and nobody serves it. ``worker_version`` takes the sessions on, or workers
    without one where it is empty.
    """

    name = serializers.CharField()
    missing = serializers.BooleanField()
    worker_version = serializers.CharField(source="given_to", allow_blank=True)
    agents = serializers.ListField(child=serializers.CharField())
    tools = serializers.ListField(child=serializers.CharField())
    model_slots = SlotsSerializer()
    tool_slots = SlotsSerializer()
    backlog = PoolBacklogSerializer(allow_null=True)
    oldest_waiting = WaitingStepSerializer(source="oldest", allow_null=True)
    workers = WorkerSerializer(many=True)


class WorkersSerializer(serializers.Serializer[Any]):
    """While ``engine_away``, the backlogs are null. ``left_out`` pools more are not shown."""

    pools = PoolSerializer(many=True)
    left_out = serializers.IntegerField()
    engine_away = serializers.BooleanField()
    server_time = serializers.DateTimeField(source="at")


class WorkerList(ApiView):
    reads = (VIEW_SESSION,)
    serializer_class = WorkersSerializer
    pagination_class = None

    @extend_schema(operation_id="workers_retrieve", responses={200: WorkersSerializer, **PROBLEMS})
    def get(self, request: Request) -> Response:
        """Pools with their workers, slots, backlog and the Step that waits longest."""
        return Response(WorkersSerializer(picture()).data)
