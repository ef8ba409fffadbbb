"""The description of the API and a page to read it, served from here and under the strict CSP."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.views.decorators.http import require_safe
from drf_spectacular.views import SpectacularAPIView


@require_safe
def docs(request: HttpRequest) -> HttpResponse:
    """The reader's page; its script reads the schema's address from the page."""
    return render(request, "api_docs.html")


urlpatterns = [
    path("schema/", SpectacularAPIView.as_view(), name="schema"),
    path("docs/", docs, name="api-docs"),
]
