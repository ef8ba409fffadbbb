"""How much of a request Daphne keeps. Without a bound it reads every body whole into memory before
Django is asked, also that of somebody who is not signed in.
"""

from typing import Any

from daphne import http_protocol

#: Room for what Django and the API still refuse in words of their own, above 1 MiB.
MOST = 4 * 1024 * 1024


class BoundedRequest(http_protocol.WebRequest):
    taken = 0

    def handleContentChunk(self, data: bytes) -> None:
        """What is too much is read and dropped: who closes at once is not heard by most clients."""
        self.taken += len(data)
        if self.taken <= MOST:
            super().handleContentChunk(data)

    def process(self) -> Any:
        if self.taken > MOST:
            return self.basic_error(413, b"Content Too Large", f"At most {MOST >> 20} MiB.")
        # Where the site is mounted is a setting, not any client's to say.
        self.requestHeaders.removeHeader(b"daphne-root-path")
        return super().process()


def bound() -> None:
    """Daphne has no option for it, and looks the class up by its name for each connection."""
    http_protocol.WebRequest = BoundedRequest
