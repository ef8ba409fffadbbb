"""Approvals over REST: the inbox, one of them, and deciding."""

from typing import Any

from django.http import Http404
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from approvals_app import decisions
from approvals_app.api_serializers import (
    ApprovalDetailSerializer,
    ApprovalSerializer,
    DecideSerializer,
)
from approvals_app.models import Interrupt, InterruptQuerySet
from dexweb.engine.errors import DexwebError
from sessions_app.api.filters import choice, flag, text
from sessions_app.api.idempotency import once
from sessions_app.api.permissions import VIEW_INTERRUPT
from sessions_app.api.schema import CONFLICTS, OPERATION, PROBLEMS, ProblemSerializer
from sessions_app.api.views import ApiView

NOT_FITTING = {
    (422, "application/problem+json"): OpenApiResponse(
        ProblemSerializer,
        "Edited arguments do not fit the tool, or answers do not fit the questions",
    )
}


def for_api() -> InterruptQuerySet:
    """Approvals with all that the API shows of them, in a fixed number of queries."""
    people = ("decisions__actor", "decisions__on_behalf_of")
    return Interrupt.objects.for_list().prefetch_related(*people)


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
            OpenApiParameter("kind", str, enum=Interrupt.Kind.values),
            OpenApiParameter("session", str, description="A session's id"),
            OpenApiParameter("agent", str, description="An agent's name"),
            OpenApiParameter("tool", str),
            OpenApiParameter("permission", str),
            OpenApiParameter("held_by", str, description="A user's name: those that they hold now"),
            OpenApiParameter("mine", bool, description="Those that you may decide or answer"),
        ],
        responses={200: ApprovalSerializer(many=True), **PROBLEMS},
    )
    def get(self, request: Request) -> Response:
        """What waits or waited for a person."""
        rows = for_api()
        if state := choice(request, "state", Interrupt.State.values):
            rows = rows.filter(state=state)
        if kind := choice(request, "kind", Interrupt.Kind.values):
            rows = rows.filter(kind=kind)
        for name, field in (
            ("session", "session_id"),
            ("agent", "session__agent__name"),
            ("tool", "tool"),
            ("permission", "permission"),
        ):
            if value := text(request, name):
                rows = rows.filter(**{field: value})
        if holder := text(request, "held_by"):
            rows = rows.filter(hold_by_name=holder, hold_until__gt=timezone.now())
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


class ActingView(ApprovalView):
    """Something is done to an approval; a refusal comes with how it stands."""

    def handle_exception(self, error: Exception) -> Response:
        """A conflict, and a decision that is only kept, say how the approval stands now."""
        response = super().handle_exception(error)
        if isinstance(error, DexwebError) and response.status_code in (409, 503):
            response.data["interrupt"] = self.shown()
        return response


class Decide(ActingView):
    serializer_class = DecideSerializer

    @extend_schema(
        operation_id="approvals_decide",
        request=DecideSerializer,
        responses={200: ApprovalDetailSerializer, **PROBLEMS, **CONFLICTS, **NOT_FITTING},
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
            args=asked["args"],
            request_id=request_id,
        )
        return Response(self.shown())
