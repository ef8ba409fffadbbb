"""What the views of the API have in common."""

from typing import Any

from rest_framework.generics import GenericAPIView
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from sessions_app.api.pagination import KeysetPagination
from sessions_app.api.permissions import HoldsPermissions
from sessions_app.api.problems import Problem
from sessions_app.api.throttles import PostThrottle


class ApiView(GenericAPIView[Any]):
    """``reads`` are the permissions of every method, ``writes`` more for those that change."""

    permission_classes = [HoldsPermissions]
    throttle_classes = [PostThrottle]
    pagination_class = KeysetPagination
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    keyset: tuple[str, ...] = ("id",)

    def get_keyset(self) -> tuple[str, ...]:
        """The order of the list; its last field is unique."""
        return self.keyset

    def page(self, rows: Any) -> Response:
        """One page of ``rows``, through the view's serializer."""
        found = self.paginate_queryset(rows)
        return self.get_paginated_response(self.get_serializer(found, many=True).data)

    def read_body(self, request: Request) -> dict[str, Any]:
        """The valid body. Raises `ValidationError`."""
        serializer = self.get_serializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        return dict(serializer.validated_data)


class UnknownAddress(APIView):
    """Whatever the API does not have."""

    permission_classes = [AllowAny]
    schema = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        raise Problem(
            404,
            "unknown_address",
            "No such address",
            f"The API has nothing at {request.path}. /api/docs/ lists what it has.",
        )
