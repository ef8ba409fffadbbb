"""Why the server closes a socket. docs/agent-events.md explains each code to clients."""

BAD_MESSAGE = 4400
SIGNED_OUT = 4401
NOT_ALLOWED = 4403
NOT_FOUND = 4404
IDLE = 4408
SERVER_ERROR = 1011


class Closed(Exception):
    """Ends a socket. ``code`` None: the client has gone, there is nobody to tell."""

    def __init__(self, code: int | None) -> None:
        super().__init__(code)
        self.code = code
