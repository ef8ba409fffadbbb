"""Answers of Dexweb are for the person who asked, now."""

from django.http import HttpRequest, HttpResponseBase
from django.utils.deprecation import MiddlewareMixin


class NoStoreMiddleware(MiddlewareMixin):
    """Keeps pages out of every cache, so that Back after signing out shows nothing.

    A view that says how it may be cached is left alone; static files never come this far.
    """

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        if not response.has_header("Cache-Control"):
            response["Cache-Control"] = "no-store"
        return response
