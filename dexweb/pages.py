"""What pages that ask for something share: the form's request id, and a refusal told where it was sent."""

from typing import Any
from uuid import UUID, uuid4

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from dexweb.engine.errors import DexwebError


def render_refusal(
    request: HttpRequest, template: str, context: dict[str, Any], refusal: DexwebError
) -> HttpResponse:
    """``template`` with ``refusal`` in its context, under the refusal's status and Retry-After."""
    response = render(request, template, {**context, "refusal": refusal}, status=refusal.status)
    if refusal.retry_after is not None:
        response["Retry-After"] = str(refusal.retry_after)
    return response


def request_id_of(request: HttpRequest) -> str:
    """The form's own, so that sending it twice asks once; what is none of ours counts as absent."""
    try:
        return str(UUID(request.POST.get("request_id", "")))
    except ValueError:
        return str(uuid4())
