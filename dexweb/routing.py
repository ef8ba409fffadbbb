"""The socket addresses. The page addresses are in urls.py."""

from typing import Any

from django.conf import settings
from django.urls import re_path

from sessions_app.stream.consumer import ApprovalsSocket, EventsSocket, SessionsSocket
from sessions_app.stream.socket import no_such_socket

websocket_urlpatterns = [
    re_path(r"^ws/sessions/(?P<session_id>[-a-zA-Z0-9_]+)/events/?$", EventsSocket.app),
    re_path(r"^ws/sessions/?$", SessionsSocket.app),
    re_path(r"^ws/approvals/?$", ApprovalsSocket.app),
    re_path("", no_such_socket),
]


def under_prefix(app: Any) -> Any:
    """``app`` also below ``DEXWEB_PATH_PREFIX``, as Django's own addresses are."""

    async def routed(scope: dict[str, Any], receive: Any, send: Any) -> None:
        prefix = settings.FORCE_SCRIPT_NAME or ""
        if prefix and scope["path"].startswith(f"{prefix}/"):
            scope = {**scope, "root_path": prefix}
        await app(scope, receive, send)

    return routed
