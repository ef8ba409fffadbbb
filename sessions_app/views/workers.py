"""The page of pools and workers."""

from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_safe

from sessions_app.workers import picture


@require_safe
@permission_required("sessions_app.view_session", raise_exception=True)
def worker_list(request: HttpRequest) -> HttpResponse:
    """The page, or for htmx what of it changes."""
    template = "workers/_pools.html" if request.htmx else "workers/list.html"
    response = render(request, template, {"picture": picture()})
    patch_vary_headers(response, ["HX-Request"])
    return response
