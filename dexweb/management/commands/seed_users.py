"""``manage.py seed_users``: the groups, and the demo's two users.

What exists is left as it is, so that whatever a person changed since stays changed.
"""

from typing import Any

from django.conf import settings
from django.contrib.auth.models import Group, Permission, User
from django.core.management.base import BaseCommand
from django.db import transaction

from approvals_app.models import PermissionKey
from dexweb.keys import demo_password

VIEW = ("sessions_app.view_session", "approvals_app.view_interrupt", "sessions_app.view_agent")
EDITED = (
    *(
        f"sessions_app.{{}}_{model}"
        for model in (
            "agent",
            "toolpolicy",
            "connection",
            "credential",
            "spendbudget",
            "modelprice",
        )
    ),
    "approvals_app.{}_permissionkey",
    "approvals_app.{}_notificationchannel",
)
GROUPS: dict[str, tuple[str, ...]] = {
    "Viewers": VIEW,
    "Operators": (*VIEW, "sessions_app.operate_session"),
    "Approvers": VIEW,
    "Platform engineers": (
        *VIEW,
        "approvals_app.view_auditentry",
        "approvals_app.export_audit",
        "approvals_app.view_notificationdelivery",
        "sessions_app.raise_spend",
        *(name.format(verb) for name in EDITED for verb in ("add", "change", "delete", "view")),
    ),
}
KEYS = {"refunds.approve": "Approvers", "tools.approve": "Approvers"}
DEMO_GROUPS = ("Operators", "Approvers", "Platform engineers")


class Command(BaseCommand):
    help = "Makes the groups, the user demo (may do everything) and the user viewer (may look)."

    @transaction.atomic
    def handle(self, *args: Any, **options: Any) -> None:
        for name, permissions in GROUPS.items():
            _group(name, permissions)
        for key, group in KEYS.items():
            row, made = PermissionKey.objects.get_or_create(key=key)
            if made:
                row.groups.add(Group.objects.get(name=group))
        password = settings.DEXWEB_DEMO_PASSWORD or demo_password(settings.DEXWEB_VAR)
        _user("demo", password, DEMO_GROUPS, is_staff=True)
        _user("viewer", password, ("Viewers",), is_staff=False)
        if options["verbosity"]:
            self.stdout.write("The users demo and viewer and their groups are there.")


def words_for_sign_in() -> str:
    """How to sign in as demo, in words, with the password unless it was changed since."""
    password = settings.DEXWEB_DEMO_PASSWORD or demo_password(settings.DEXWEB_VAR)
    if User.objects.get(username="demo").check_password(password):
        return f"user demo, password {password}"
    return "user demo, with the password that was set for it"


def _group(name: str, permissions: tuple[str, ...]) -> None:
    group, made = Group.objects.get_or_create(name=name)
    if not made:
        return
    for permission in permissions:
        app, codename = permission.split(".")
        found = Permission.objects.get(content_type__app_label=app, codename=codename)
        group.permissions.add(found)


def _user(name: str, password: str, groups: tuple[str, ...], is_staff: bool) -> None:
    user, made = User.objects.get_or_create(username=name, defaults={"is_staff": is_staff})
    if made:
        user.groups.set(Group.objects.filter(name__in=groups))
    if made or (settings.DEXWEB_DEMO_PASSWORD and not user.check_password(password)):
        user.set_password(password)
        user.save(update_fields=["password"])
