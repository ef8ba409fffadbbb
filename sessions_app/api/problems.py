"""The one place where a refusal becomes an HTTP answer, as RFC 9457 describes it."""

import logging
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import InterfaceError, OperationalError
from django.http import Http404
from rest_framework import exceptions, status
from rest_framework.response import Response
from rest_framework.views import set_rollback

from dexweb.engine.errors import DatabaseBusy, DexwebError, RpcLockConflict
from sessions_app.api.renderers import ExactJSONRenderer

logger = logging.getLogger(__name__)

PROBLEM_TYPE = "application/problem+json"

_TITLES = {
    400: "The request is not valid",
    401: "Sign in first",
    403: "Not allowed",
    404: "Not found",
    405: "Not possible here",
    406: "No such format",
    413: "Too large",
    415: "Send JSON",
    429: "Too many requests",
    500: "Something broke here",
}


class Problem(exceptions.APIException):
    """A refusal of the API itself. ``members`` go into the body."""

    def __init__(
        self, status_code: int, code: str, title: str, detail: str, **members: Any
    ) -> None:
        super().__init__(detail, code)
        self.status_code = status_code
        self.title = title
        self.members = members


def problem_handler(error: Exception, context: dict[str, Any]) -> Response:
    """``error`` as a problem: type, title, status, detail, code, retryable, and what it carries."""
    request = context.get("request")
    if request is not None:
        # Whatever was asked for, a refusal is JSON.
        request.accepted_renderer = ExactJSONRenderer()
        request.accepted_media_type = ExactJSONRenderer.media_type
    set_rollback()
    if isinstance(error, OperationalError | InterfaceError):
        logger.warning("The database failed the API: %s", error)
        error = DatabaseBusy()
    if isinstance(error, DexwebError):
        return _answer(*_of_dexweb(error))
    if isinstance(error, Http404):
        error = exceptions.NotFound()
    elif isinstance(error, PermissionDenied):
        error = exceptions.PermissionDenied(str(error) or None)
    if isinstance(error, exceptions.APIException):
        return _answer(*_of_framework(error))
    logger.exception("The API failed on %s", getattr(request, "path", "a request"), exc_info=error)
    body = _body(500, "internal_error", _TITLES[500], "The log of the server says more.", True)
    return _answer(body, {})


def refusal_body(error: DexwebError) -> dict[str, Any]:
    """The members of ``error`` as a problem, for answers that hold one among other things."""
    return _of_dexweb(error)[0]


def _of_dexweb(error: DexwebError) -> tuple[dict[str, Any], dict[str, str]]:
    lasting_hold = isinstance(error, RpcLockConflict) and error.lock_kind == "hold"
    retryable = error.status >= 500 or (isinstance(error, RpcLockConflict) and not lasting_hold)
    body = _body(error.status, error.code, error.title, error.message, retryable)
    # The stable members win over a detail of the same name.
    body = {**_plain(error.details()), **body}
    if isinstance(error, RpcLockConflict):
        # As the lock itself has it, beside the name that a refusal has elsewhere.
        body["kind"] = error.lock_kind
    headers = {}
    if error.retry_after is not None:
        headers["Retry-After"] = str(error.retry_after)
    elif retryable:
        headers["Retry-After"] = "1"
    return body, headers


def _plain(details: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in details.items() if value not in (None, "")}


def _of_framework(error: exceptions.APIException) -> tuple[dict[str, Any], dict[str, str]]:
    headers = {}
    if getattr(error, "auth_header", None):
        headers["WWW-Authenticate"] = error.auth_header
    if isinstance(error, exceptions.Throttled):
        headers["Retry-After"] = str(int(error.wait or 1))
    number = error.status_code
    retryable = number in (status.HTTP_429_TOO_MANY_REQUESTS, status.HTTP_503_SERVICE_UNAVAILABLE)
    if isinstance(error, exceptions.ValidationError):
        body = _body(number, "invalid", _TITLES[400], _first_words(error.detail), False)
        errors = error.detail if isinstance(error.detail, dict) else {"body": error.detail}
        return {**body, "errors": errors}, headers
    code = "too_many_requests" if number == 429 else str(error.get_codes())
    title = getattr(error, "title", None) or _TITLES.get(number, "That cannot be done")
    body = _body(number, code, title, str(error.detail), retryable)
    return {**body, **getattr(error, "members", {})}, headers


def _first_words(detail: Any, path: str = "") -> str:
    """The first complaint of a tree of them, with the name of what it is about."""
    if isinstance(detail, dict):
        name, inner = next(iter(detail.items()))
        here = "" if name == "non_field_errors" else str(name)
        return _first_words(inner, f"{path}.{here}".strip("."))
    if isinstance(detail, list):
        return _first_words(next((item for item in detail if item), ""), path)
    return f"{path}: {detail}" if path else str(detail)


def _body(number: int, code: str, title: str, detail: str, retryable: bool) -> dict[str, Any]:
    return {
        "type": f"urn:dexweb:problem:{code}",
        "title": title,
        "status": number,
        "detail": detail,
        "code": code,
        "retryable": retryable,
    }


def _answer(body: dict[str, Any], headers: dict[str, str]) -> Response:
    return Response(body, status=body["status"], headers=headers, content_type=PROBLEM_TYPE)
