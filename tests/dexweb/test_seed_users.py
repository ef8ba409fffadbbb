"""``manage.py seed_users``: who the demo's people are, and what they may do."""

import stat

import pytest
from django.contrib.auth.models import Group, User
from django.core.management import call_command

from approvals_app.models import PermissionKey
from dexweb.management.commands.seed_users import words_for_sign_in

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def own_var(settings, tmp_path):
    settings.DEXWEB_VAR, settings.DEXWEB_DEMO_PASSWORD = tmp_path, ""


def seed():
    call_command("seed_users", verbosity=0)
    return User.objects.get(username="demo"), User.objects.get(username="viewer")


def test_demo_operates_approves_and_engineers_and_viewer_looks():
    demo, viewer = seed()
    assert demo.is_staff and not demo.is_superuser and not viewer.is_staff
    assert demo.has_perms(["sessions_app.operate_session", "sessions_app.change_credential"])
    assert viewer.has_perms(["sessions_app.view_session", "approvals_app.view_interrupt"])
    assert not viewer.has_perm("sessions_app.operate_session")
    held = PermissionKey.objects.filter(groups__user=demo).values_list("key", flat=True)
    assert set(held) == {"refunds.approve", "tools.approve"}
    assert not PermissionKey.objects.filter(groups__user=viewer).exists()


def test_the_password_is_made_once_kept_private_and_told(tmp_path):
    demo, viewer = seed()
    password = (tmp_path / "demo.password").read_text()
    assert stat.S_IMODE((tmp_path / "demo.password").stat().st_mode) == 0o600
    assert demo.check_password(password) and viewer.check_password(password)
    assert words_for_sign_in() == f"user demo, password {password}"
    assert seed()[0].check_password(password)


def test_a_given_password_is_applied_to_users_that_are_there(settings):
    seed()
    settings.DEXWEB_DEMO_PASSWORD = "correct horse battery"
    assert seed()[0].check_password("correct horse battery")
    assert words_for_sign_in() == "user demo, password correct horse battery"


def test_what_a_person_changed_since_stays_changed():
    demo, _ = seed()
    demo.groups.clear()
    demo.set_password("chosen by a person")
    demo.save()
    Group.objects.get(name="Viewers").permissions.clear()
    PermissionKey.objects.get(key="tools.approve").groups.clear()
    demo, viewer = seed()
    assert demo.check_password("chosen by a person") and not demo.groups.exists()
    assert not viewer.has_perm("sessions_app.view_session")
    assert not PermissionKey.objects.get(key="tools.approve").groups.exists()
    assert words_for_sign_in() == "user demo, with the password that was set for it"
