"""Over REST: answering a question that an agent has asked."""

from typing import Any

from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from approvals_app.api import NOT_FITTING, ActingView
from approvals_app.api_serializers import ApprovalDetailSerializer
from sessions_app import actions
from sessions_app.api.idempotency import once
from sessions_app.api.permissions import OPERATE_SESSION
from sessions_app.api.schema import CONFLICTS, OPERATION, PROBLEMS
from sessions_app.api.serializers import StrictSerializer


@extend_schema_field(
    {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
)
class AnswerField(serializers.Field[Any, Any, Any, Any]):
    """A text, or several for a question that takes several. Read as a list."""

    def to_internal_value(self, data: Any) -> list[str]:
        texts = [data] if isinstance(data, str) else data
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise serializers.ValidationError("An answer is a text, or a list of texts.")
        return texts


class AnswerSerializer(StrictSerializer):
    """``answers``: one for each question, in their order; choices in the very words offered."""

    revision = serializers.IntegerField(min_value=1, max_value=2**31 - 1)
    answers = serializers.ListField(child=AnswerField(), max_length=4)


class Answer(ActingView):
    writes = (OPERATE_SESSION,)
    serializer_class = AnswerSerializer

    @extend_schema(
        operation_id="approvals_answer",
        request=AnswerSerializer,
        responses={200: ApprovalDetailSerializer, **PROBLEMS, **CONFLICTS, **NOT_FITTING},
        **OPERATION,
    )
    def post(self, request: Request, interrupt_id: str) -> Response:
        """Answer all of its questions at once. A 409 has the fresh state as ``interrupt``."""
        return once(self, self._answer)

    def _answer(self, request_id: str) -> Response:
        self.get_interrupt()
        asked = self.read_body(self.request)
        actions.answer_question(
            self.request.user,
            self.kwargs["interrupt_id"],
            revision=asked["revision"],
            answers=asked["answers"],
            request_id=request_id,
        )
        return Response(self.shown())
