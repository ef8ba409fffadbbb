"""What is in a session: its steps, events, graph and a snapshot to begin following it from."""

from typing import Any

from django.db.models import QuerySet
from django.db.models.functions import Left
from django.http import Http404
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import DateTimeField, IntegerField, Serializer
from rest_framework.utils.urls import replace_query_param

from approvals_app.api import ApprovalSerializer
from approvals_app.models import Interrupt
from sessions_app.api import serializers
from sessions_app.api.filters import choice, number, text
from sessions_app.api.pagination import read_limit
from sessions_app.api.permissions import VIEW_INTERRUPT
from sessions_app.api.problems import Problem
from sessions_app.api.renderers import ExactJSONRenderer, SVGRenderer
from sessions_app.api.schema import PROBLEMS
from sessions_app.api.sessions import SessionView
from sessions_app.graph.model import GraphPart, GraphStep, build_parts
from sessions_app.graph.service import part_view
from sessions_app.models import Session, Step
from sessions_app.stream.read import PAGE_EVENTS, events_after

GRAPH_STEPS = 5000
OPEN_STEPS = 200


def steps_for_list(session: Session) -> QuerySet[Step]:
    """Steps with the beginning of their texts, which alone is read."""
    return session.steps.annotate(
        text_start=Left("text", serializers.PREVIEW),
        reasoning_start=Left("reasoning", serializers.PREVIEW),
    ).defer("text", "reasoning", "response")


class StepList(SessionView):
    serializer_class = serializers.StepSerializer
    keyset = ("position",)

    @extend_schema(
        operation_id="sessions_steps_list",
        parameters=[
            OpenApiParameter("turn", int),
            OpenApiParameter("status", str, enum=Step.Status.values),
            OpenApiParameter("type", str, description="Like RunModel"),
        ],
        responses={200: serializers.StepSerializer(many=True), **PROBLEMS},
    )
    def get(self, request: Request, session_id: str) -> Response:
        """The session's Steps in the order in which they came about."""
        rows = steps_for_list(self.get_session())
        turn = number(request, "turn")
        if turn is not None:
            rows = rows.filter(turn=turn)
        if status := choice(request, "status", Step.Status.values):
            rows = rows.filter(status=status)
        if kind := text(request, "type"):
            rows = rows.filter(type=kind)
        return self.page(rows)


class StepDetail(SessionView):
    serializer_class = serializers.StepDetailSerializer

    @extend_schema(
        operation_id="sessions_steps_retrieve",
        responses={200: serializers.StepDetailSerializer, **PROBLEMS},
    )
    def get(self, request: Request, session_id: str, step_id: str) -> Response:
        """One Step in full, with its tool call."""
        step = self.get_session().steps.filter(step_id=step_id).first()
        if step is None:
            raise Http404
        return Response(self.get_serializer(step).data)


class EventList(SessionView):
    serializer_class = serializers.EventPageSerializer

    @extend_schema(
        operation_id="sessions_events_list",
        parameters=[
            OpenApiParameter("after", int, description="The last number that you have"),
            OpenApiParameter("limit", int, description=f"At most {PAGE_EVENTS}"),
        ],
        responses={200: serializers.EventPageSerializer, **PROBLEMS},
    )
    def get(self, request: Request, session_id: str) -> Response:
        """AgentEvents after a number, as the live stream sends them; 410 when they are gone."""
        after = number(request, "after", 0)
        assert after is not None
        page = events_after(session_id, after, read_limit(request, PAGE_EVENTS, PAGE_EVENTS))
        following = (
            replace_query_param(request.build_absolute_uri(), "after", str(page.events[-1]["seq"]))
            if page.more
            else None
        )
        return Response(
            {
                "results": page.events,
                "next": following,
                "previous": None,
                "trimmed": page.trimmed,
                "last_seq": page.last_seq,
                "retained_from": page.retained_from,
            }
        )


class Graph(SessionView):
    serializer_class = serializers.GraphSerializer
    renderer_classes = [ExactJSONRenderer, SVGRenderer]

    @extend_schema(
        operation_id="sessions_graph_retrieve",
        parameters=[
            OpenApiParameter("part", str, description="One part's key; for a drawing the newest"),
            OpenApiParameter("format", str, enum=["json", "svg"]),
        ],
        responses={
            (200, "application/json"): serializers.GraphSerializer,
            (200, "image/svg+xml"): str,
            **PROBLEMS,
        },
    )
    def get(self, request: Request, session_id: str) -> Response:
        """The graph of Steps: nodes and edges, or the drawing of one part."""
        rows, cut = _graph_steps(self.get_session())
        parts = build_parts(rows)
        if key := text(request, "part"):
            parts = [part for part in parts if part.key == key]
            if not parts:
                raise Http404
        if request.accepted_renderer.format == "svg":
            return Response(_drawing(parts))
        return Response(_graph_json(parts, cut))


def _graph_steps(session: Session) -> tuple[list[GraphStep], bool]:
    """The newest Steps, oldest first, and whether older ones were left out."""
    names = [
        "step_id",
        "type",
        "status",
        "turn",
        "causes",
        "tool",
        "outcome",
        "attempt",
        "detail",
        "started_at",
        "ended_at",
    ]
    newest = list(session.steps.order_by("-position").values(*names)[: GRAPH_STEPS + 1])
    rows = [GraphStep(**{**row, "causes": tuple(row["causes"])}) for row in newest[:GRAPH_STEPS]]
    return rows[::-1], len(newest) > GRAPH_STEPS


def _drawing(parts: list[GraphPart]) -> str:
    if not parts:
        raise Http404
    view = part_view(parts[-1])
    if view.svg is None:
        raise Problem(
            503,
            "graph_unavailable",
            "No drawing",
            f"{view.reason}. Nodes and edges come without format=svg.",
        )
    return view.svg


def _graph_json(parts: list[GraphPart], cut: bool) -> dict[str, Any]:
    return {
        "parts": [
            {
                "key": part.key,
                "turn": part.turn,
                "title": part.title,
                "state": part.state_class.removeprefix("s-"),
                "step_count": part.step_count,
                "links": list(part.links),
            }
            for part in parts
        ],
        "nodes": [
            {
                "id": node.id,
                "part": part.key,
                "step_ids": list(node.step_ids),
                "type": node.type,
                "label": node.label,
                "sublabel": node.sublabel,
                "state": node.state,
            }
            for part in parts
            for node in part.nodes
        ],
        "edges": [
            {"source": source, "target": target, "part": part.key}
            for part in parts
            for source, target in part.edges
        ],
        "older_left_out": cut,
    }


class SnapshotSerializer(Serializer[Any]):
    """``steps`` are the open ones, ``approvals`` the pending ones."""

    session = serializers.SessionDetailSerializer()
    steps = serializers.StepSerializer(many=True)
    approvals = ApprovalSerializer(many=True)
    last_seq = IntegerField()
    server_time = DateTimeField()


class Snapshot(SessionView):
    serializer_class = SnapshotSerializer

    @extend_schema(
        operation_id="sessions_snapshot_retrieve",
        responses={200: SnapshotSerializer, **PROBLEMS},
    )
    def get(self, request: Request, session_id: str) -> Response:
        """How the session stands; follow its events from ``last_seq``."""
        # The session first: what is read after it may be newer than last_seq, never older.
        session = self.get_session()
        open_steps = steps_for_list(session).filter(
            status__in=[
                Step.Status.PLANNED,
                Step.Status.SCHEDULED,
                Step.Status.ACTIVE,
                Step.Status.WAITING,
            ]
        )
        pending = (
            Interrupt.objects.for_list().pending().filter(session=session)
            if request.user.has_perm(VIEW_INTERRUPT)
            else Interrupt.objects.none()
        )
        return Response(
            {
                "session": serializers.SessionDetailSerializer(session).data,
                "steps": serializers.StepSerializer(open_steps[:OPEN_STEPS], many=True).data,
                "approvals": ApprovalSerializer(
                    pending.prefetch_related("decisions__actor")[:OPEN_STEPS], many=True
                ).data,
                "last_seq": session.last_seq,
                "server_time": timezone.now(),
            }
        )
