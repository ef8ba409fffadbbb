"""The socket addresses. The page addresses are in urls.py."""

from django.urls import path, re_path

from sessions_app.stream.consumer import ApprovalsSocket, EventsSocket, SessionsSocket
from sessions_app.stream.socket import no_such_socket

websocket_urlpatterns = [
    path("ws/sessions/<slug:session_id>/events", EventsSocket.app),
    path("ws/sessions", SessionsSocket.app),
    path("ws/approvals", ApprovalsSocket.app),
    re_path("", no_such_socket),
]
