"""What a view of the API needs of the person who asks."""

from typing import Any

from rest_framework.permissions import BasePermission
from rest_framework.request import Request

VIEW_SESSION = "sessions_app.view_session"
OPERATE_SESSION = "sessions_app.operate_session"
VIEW_INTERRUPT = "approvals_app.view_interrupt"


class HoldsPermissions(BasePermission):
    """The view names them: ``reads`` for every method, ``writes`` also for those that change."""

    def has_permission(self, request: Request, view: Any) -> bool:
        user = request.user
        if user is None or not user.is_authenticated:
            return False
        needed = [*view.reads]
        if request.method not in ("GET", "HEAD", "OPTIONS"):
            needed += view.writes
        missing = [name for name in needed if not user.has_perm(name)]
        if missing:
            self.message = f"This needs the permission {missing[0]}, which you do not hold."
        return not missing
