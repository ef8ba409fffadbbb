"""A socket is opened only by our own pages: a browser sends cookies along from any page."""

from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.http.request import validate_host
from django.utils.http import is_same_domain


class OwnOrigin:
    """Refuses, before accepting (HTTP 403), a handshake whose Origin is another site's.

    Ours are the host that was asked for and ``DEXWEB_TRUSTED_ORIGINS``. Without an Origin there is
    no browser, and so no cookie that somebody else's page could borrow.
    """

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        headers = dict(scope["headers"])
        origin = headers.get(b"origin", b"").decode("latin1")
        if origin and not is_ours(origin, headers.get(b"host", b"").decode("latin1")):
            await receive()
            await send({"type": "websocket.close"})
            return
        await self.app(scope, receive, send)


def is_ours(origin: str, host: str) -> bool:
    """Whether ``origin`` (scheme://host:port) may open a socket on ``host``."""
    try:
        parts = urlsplit(origin)
        name = parts.hostname or ""
    except ValueError:
        return False
    if any(_trusts(trusted, origin) for trusted in settings.CSRF_TRUSTED_ORIGINS):
        return True
    allowed = settings.ALLOWED_HOSTS
    bare = f"[{name}]" if ":" in name else name
    # The host must be ours as well: a foreign name that resolves to us has its own pages.
    return (
        bool(name) and validate_host(bare, allowed) and host.lower() in ("", parts.netloc.lower())
    )


def _trusts(trusted: str, origin: str) -> bool:
    scheme, _, netloc = trusted.partition("://")
    if not netloc.startswith("*."):
        return trusted == origin
    parts = urlsplit(origin)
    return parts.scheme == scheme and is_same_domain(parts.netloc, netloc[1:])
