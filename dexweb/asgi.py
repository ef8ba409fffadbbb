"""The ASGI application: Django for HTTP, the sockets of routing.py for WebSocket."""

import os
import sys

from channels.routing import ProtocolTypeRouter, URLRouter
from channels.sessions import CookieMiddleware
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dexweb.settings")
django_application = get_asgi_application()

# Imported only now: they need the models that the line above has loaded.
from dexweb.routing import under_prefix, websocket_urlpatterns  # noqa: E402
from sessions_app.stream.origin import OwnOrigin  # noqa: E402

application = ProtocolTypeRouter(
    {
        "http": django_application,
        "websocket": OwnOrigin(CookieMiddleware(under_prefix(URLRouter(websocket_urlpatterns)))),
    }
)

if "daphne.http_protocol" in sys.modules:
    # Imported by the server itself, by whichever command it was started.
    from dexweb import bodies

    bodies.bound()
