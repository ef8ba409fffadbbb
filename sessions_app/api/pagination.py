"""Lists page by page: ``{results, next, previous}``, by key as the pages do it."""

from typing import Any

from django.core.exceptions import ValidationError as FieldError
from django.db.models import QuerySet
from rest_framework.exceptions import ValidationError
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param

from dexweb.paging import LIMIT, LIMIT_AT_MOST, Page, keyset_page


def read_limit(request: Request, at_most: int = LIMIT_AT_MOST, default: int = LIMIT) -> int:
    """``?limit=`` as a number from 1 to ``at_most``. Raises `ValidationError`."""
    written = request.query_params.get("limit", "")
    if not written:
        return default
    if not (written.isascii() and written.isdigit() and len(written) < 10 and int(written) > 0):
        raise ValidationError({"limit": f"Give a whole number from 1 to {at_most}."})
    return min(int(written), at_most)


class KeysetPagination(BasePagination):
    """The order is the view's `get_keyset`, like ``("-updated_at", "-id")``; the last is unique."""

    def paginate_queryset(
        self, queryset: QuerySet[Any], request: Request, view: Any = None
    ) -> list[Any]:
        limit = read_limit(request)
        cursor = request.query_params.get("cursor", "")
        try:
            page = keyset_page(queryset, view.get_keyset(), cursor, limit)
        except (FieldError, TypeError, ValueError) as error:
            raise _no_cursor() from error
        if cursor and page.beginning:
            raise _no_cursor()
        self.page: Page[Any] = page
        self.url = request.build_absolute_uri()
        return page.rows

    def get_paginated_response(self, data: Any) -> Response:
        return Response(
            {
                "results": data,
                "next": self._link(self.page.next),
                "previous": self._link(self.page.previous),
            }
        )

    def _link(self, cursor: str) -> str | None:
        return replace_query_param(self.url, "cursor", cursor) if cursor else None

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        link = {"type": "string", "format": "uri", "nullable": True}
        return {
            "type": "object",
            "required": ["results", "next", "previous"],
            "properties": {"results": schema, "next": link, "previous": link},
        }

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        return [
            _parameter("cursor", {"type": "string"}, "Taken from next or previous"),
            _parameter("limit", {"type": "integer", "minimum": 1, "maximum": LIMIT_AT_MOST}, ""),
        ]


def _no_cursor() -> ValidationError:
    return ValidationError(
        {"cursor": "This is no cursor of this list. Take it from next or previous."}
    )


def _parameter(name: str, schema: dict[str, Any], description: str) -> dict[str, Any]:
    return {
        "name": name,
        "in": "query",
        "required": False,
        "schema": schema,
        "description": description,
    }
