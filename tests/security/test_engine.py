"""The engine that comes with Dexweb has no sign-in of its own, so no web page may talk to it."""

import http.client

import pytest


@pytest.mark.parametrize("host", ["", "localhost", "evil.example"])
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/v1/namespaces/default/workflows"),
        ("POST", "/api/v1/namespaces/default/workflows/any/update/resolve_interrupt"),
    ],
)
def test_its_http_door_is_shut(temporal_engine, method, path, host):
    """A page of any site could post plain text there, or read by a name that leads here."""
    words = temporal_engine.process.args
    port = int(words[words.index("--http-port") + 1])
    door = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    body = "{}" if method == "POST" else None
    headers = {"Content-Type": "text/plain"} | ({"Host": f"{host}:{port}"} if host else {})
    door.request(method, path, body, headers)
    assert door.getresponse().status == 403
    door.close()
