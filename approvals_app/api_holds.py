"""Over REST: saying that one looks at an approval, letting go of it, and moving its deadline."""

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from approvals_app import holds
from approvals_app.api import ActingView
from approvals_app.api_serializers import ApprovalDetailSerializer
from sessions_app.api.idempotency import once
from sessions_app.api.schema import CONFLICTS, OPERATION, PROBLEMS
from sessions_app.api.serializers import NothingSerializer, StrictSerializer

_ZONE = re.compile(r"(?:[zZ]|[+-]\d\d:?\d\d)\s*\Z")


class HoldSerializer(StrictSerializer):
    seconds = serializers.IntegerField(
        min_value=1, max_value=holds.LONGEST_HOLD, required=False, default=holds.HOLD_SECONDS
    )


class ZonedDateTimeField(serializers.DateTimeField):
    """A moment says its zone: whose clock would count is never guessed."""

    def to_internal_value(self, value: Any) -> datetime:
        if not isinstance(value, str) or not _ZONE.search(value):
            raise serializers.ValidationError(
                "Give a moment with its zone, like 2026-03-01T12:00:00Z."
            )
        try:
            return super().to_internal_value(value)
        except OverflowError as error:
            raise serializers.ValidationError("This moment is beyond the calendar.") from error


class ExtendSerializer(StrictSerializer):
    until = ZonedDateTimeField()


def _described(name: str, request: type[Any]) -> Any:
    return extend_schema(
        operation_id=f"approvals_{name}",
        request=request,
        responses={200: ApprovalDetailSerializer, **PROBLEMS, **CONFLICTS},
        **OPERATION,
    )


class HoldingView(ActingView):
    """``act`` is a function of `holds`; the answer is how the approval stands after it."""

    act: Callable[..., None]

    def asked(self) -> Response:
        return once(self, self._act)

    def _act(self, request_id: str) -> Response:
        self.get_interrupt()
        values = self.read_body(self.request)
        act = type(self).act
        act(self.request.user, self.kwargs["interrupt_id"], **values, request_id=request_id)
        return Response(self.shown())


class Hold(HoldingView):
    serializer_class = HoldSerializer
    act = staticmethod(holds.hold)

    @_described("hold", HoldSerializer)
    def post(self, request: Request, interrupt_id: str) -> Response:
        """Put your name on it; again to stay longer. 409 while another person holds it."""
        return self.asked()


class TakeOver(HoldingView):
    serializer_class = HoldSerializer
    act = staticmethod(holds.take_over)

    @_described("take_over", HoldSerializer)
    def post(self, request: Request, interrupt_id: str) -> Response:
        """Hold it in place of whoever does. That is in the audit log."""
        return self.asked()


class Release(HoldingView):
    serializer_class = NothingSerializer
    act = staticmethod(holds.release)

    @_described("release", NothingSerializer)
    def post(self, request: Request, interrupt_id: str) -> Response:
        """Let go of your hold."""
        return self.asked()


class Extend(HoldingView):
    serializer_class = ExtendSerializer
    act = staticmethod(holds.extend)

    @_described("extend", ExtendSerializer)
    def post(self, request: Request, interrupt_id: str) -> Response:
        """Move the deadline. The engine's clock says whether it is still to come."""
        return self.asked()
