"""A refusal, told on the page where the person acted."""

from typing import Any

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
