"""What the frame around every page shows."""

from functools import cached_property
from typing import Any

from django.http import HttpRequest

SECTIONS = ("sessions", "approvals", "agents")


class Chrome:
    """Read by base.html; what a page does not draw is never asked for."""

    def __init__(self, request: HttpRequest) -> None:
        self._request = request

    @cached_property
    def pending_approvals(self) -> int:
        """How many approvals wait for this user's decision."""
        user = getattr(self._request, "user", None)
        if user is None or not user.has_perm("approvals_app.view_interrupt"):
            return 0
        from approvals_app.models import Interrupt

        return Interrupt.objects.pending().decidable_by(user).count()

    @property
    def section(self) -> str:
        first = self._request.path_info.strip("/").split("/", 1)[0]
        return first if first in SECTIONS else ""


def chrome(request: HttpRequest) -> dict[str, Any]:
    frame = Chrome(request)
    return {"section": frame.section, "chrome": frame}
