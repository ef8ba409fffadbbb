"""Answers are for the person who asked, now, also while the database is busy; and the audit log learns
which way in was used.
"""

import logging
from typing import Any

from asgiref.sync import iscoroutinefunction
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.utils.decorators import sync_and_async_middleware
from django.utils.deprecation import MiddlewareMixin

from approvals_app import audit
from dexweb.accounts import signed_out
from dexweb.engine.errors import DatabaseBusy

log = logging.getLogger(__name__)


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


class SamePersonMiddleware(MiddlewareMixin):
    """A page that one person opened does nothing in the name of another who signed in since, in a
    second tab: whoever reads the one name on it would decide under the other.

    What a page asks for, and its forms, say whom it was made for.
    """

    def process_request(self, request: HttpRequest) -> HttpResponseBase | None:
        person = request.headers.get("X-Dexweb-Person")
        if not person or not request.user.is_authenticated or person == str(request.user.pk):
            return None
        return signed_out(request)


class DatabaseBusyMiddleware(MiddlewareMixin):
    """A page whose database is locked or away says so, and when to try again."""

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponseBase | None:
        if not isinstance(error, OperationalError | InterfaceError):
            return None
        log.warning("The database failed %s: %s", request.path, error)
        busy = DatabaseBusy()
        response = render(request, "503.html", {"refusal": busy}, status=busy.status)
        response["Retry-After"] = str(busy.retry_after)
        return response


@sync_and_async_middleware
def audit_surface(get_response: Any) -> Any:
    """Entries of the audit log say by which way in they came; a token is told from a sign-in."""
    if iscoroutinefunction(get_response):

        async def recorded_async(request: HttpRequest) -> HttpResponseBase:
            with audit.via(surface_of(request)):
                response: HttpResponseBase = await get_response(request)
                return response

        return recorded_async

    def recorded(request: HttpRequest) -> HttpResponseBase:
        with audit.via(surface_of(request)):
            response: HttpResponseBase = get_response(request)
            return response

    return recorded


def surface_of(request: HttpRequest) -> str:
    """A key of `audit.SURFACES`. The header decides as it does for the API: a token comes first."""
    if request.path_info.startswith("/admin/"):
        return "admin"
    if not request.path_info.startswith("/api/"):
        return "page"
    words = request.headers.get("Authorization", "").split()
    return "api:token" if words and words[0].lower() == "token" else "api:session"
