"""Deciding on a few approvals in one request, each on its own and with its own answer."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from approvals_app import audit, batch
from approvals_app.models import Decision
from sessions_app.api.idempotency import once
from sessions_app.api.permissions import VIEW_INTERRUPT
from sessions_app.api.problems import refusal_body
from sessions_app.api.schema import CONFLICTS, OPERATION, PROBLEMS
from sessions_app.api.serializers import StrictSerializer
from sessions_app.api.views import ApiView


class NamedSerializer(StrictSerializer):
    """An approval exactly as it was shown."""

    id = serializers.RegexField(r"\A[\w-]{1,64}\Z")
    revision = serializers.IntegerField(min_value=1, max_value=2**31 - 1)
    args_hash = serializers.RegexField(r"\A[0-9a-f]{64}\Z")


class BatchSerializer(StrictSerializer):
    """One verdict and one reason for up to 50 approvals."""

    items = NamedSerializer(many=True, allow_empty=False)
    verdict = serializers.ChoiceField(Decision.Verdict.choices)
    reason = serializers.CharField(max_length=2000, required=False, allow_blank=True, default="")


class BatchResultSerializer(serializers.Serializer[Any]):
    """``outcome``: delivered, kept (delivered as soon as the engine is back), refused or not_sent.

    ``missing``: how many more approvals a call needs that your vote did not end.
    What is not delivered has ``code``, ``title``, ``detail`` and ``retryable`` as a problem has.
    """

    id = serializers.CharField()
    ok = serializers.BooleanField()
    missing = serializers.IntegerField(required=False)
    outcome = serializers.ChoiceField(["delivered", "kept", "refused", "not_sent"])
    code = serializers.CharField(required=False)
    title = serializers.CharField(required=False)
    detail = serializers.CharField(required=False)
    retryable = serializers.BooleanField(required=False)


class BatchAnswerSerializer(serializers.Serializer[Any]):
    results = BatchResultSerializer(many=True)


class DecideBatch(ApiView):
    reads = (VIEW_INTERRUPT,)
    serializer_class = BatchSerializer

    @extend_schema(
        operation_id="approvals_batch",
        request=BatchSerializer,
        responses={200: BatchAnswerSerializer, **PROBLEMS, **CONFLICTS},
        **OPERATION,
    )
    def post(self, request: Request) -> Response:
        """Approve or reject each of them; a refused one does not stop the others."""
        return once(self, self._decide)

    def _decide(self, request_id: str) -> Response:
        body = self.read_body(self.request)
        items = tuple(batch.Named(**item) for item in body["items"])
        asked = batch.Asked(request_id, body["verdict"], items, body["reason"])
        with audit.via("api"):
            results = batch.decide_all(self.request.user, asked)
        return Response({"results": [_said(result) for result in results]})


def _said(result: batch.Result) -> dict[str, Any]:
    problem = refusal_body(result.error) if result.error else {}
    said = {**problem, "id": result.id, "ok": result.ok, "outcome": result.outcome}
    if result.waits_for_more and result.votes:
        said["missing"] = result.votes.missing
    return said
