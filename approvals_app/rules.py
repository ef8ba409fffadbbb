"""Who may decide."""

from approvals_app.models import Interrupt, PermissionKey, Principal

SEE = "approvals_app.view_interrupt"


def permission_keys(user: Principal) -> frozenset[str] | None:
    """The permission keys that ``user`` holds through groups; None means all (a superuser)."""
    if not user.is_active or not user.is_authenticated:
        return frozenset()
    if user.is_superuser:  # type: ignore[union-attr]
        return None
    return frozenset(PermissionKey.objects.filter(groups__user=user).values_list("key", flat=True))


def holds(user: Principal, permission: str) -> bool:
    keys = permission_keys(user)
    return keys is None or permission in keys


def may_decide(user: Principal, interrupt: Interrupt) -> bool:
    """Whether ``user`` may decide on ``interrupt``: sees approvals and holds its permission key."""
    return user.is_active and user.has_perm(SEE) and holds(user, interrupt.permission)  # type: ignore[union-attr]
