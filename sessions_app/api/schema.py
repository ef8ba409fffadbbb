"""What the API's description says of every operation."""

from typing import Any

from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework import serializers


class ProblemSerializer(serializers.Serializer[Any]):
    """RFC 9457. ``code`` is stable; further members belong to it, such as ``errors`` by field."""

    type = serializers.CharField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField()
    code = serializers.CharField()
    retryable = serializers.BooleanField()


_PROBLEM = "application/problem+json"
PROBLEMS: dict[Any, Any] = {
    (status, _PROBLEM): OpenApiResponse(ProblemSerializer, words)
    for status, words in (
        (400, "Not valid"),
        (401, "Not signed in"),
        (403, "Not allowed"),
        (404, "Not found"),
    )
}

#: For a POST: its key, and the refusals that come from what it acts on.
OPERATION: dict[str, Any] = {
    "parameters": [
        OpenApiParameter(
            "Idempotency-Key",
            str,
            OpenApiParameter.HEADER,
            description="A retry with the same key and body gets the first answer.",
        )
    ]
}
CONFLICTS: dict[Any, Any] = {
    (status, _PROBLEM): OpenApiResponse(ProblemSerializer, words)
    for status, words in (
        (409, "Conflict: locked, decided, expired, stale or ended"),
        (413, "Too large"),
        (429, "Too many requests"),
        (503, "Engine or worker away; Retry-After says when to ask again"),
    )
}


def without_alternates(endpoints: list[Any], **kwargs: Any) -> list[Any]:
    """One entry for each address of the API: not again with the last slash added or left out."""
    return [endpoint for endpoint in endpoints if not getattr(endpoint[3], "is_alternate", False)]
