"""``manage.py rotate_credentials``: an old key may go once it says so."""

import pytest
from cryptography.fernet import Fernet
from django.core.management import CommandError, call_command

from approvals_app.models import NotificationChannel
from sessions_app.models import Credential

pytestmark = pytest.mark.django_db
OLD, NEW = Fernet.generate_key().decode(), Fernet.generate_key().decode()
SECRET = "sk-a-long-secret-value-9876"


@pytest.fixture
def under_the_old(settings):
    settings.DEXWEB_CREDENTIAL_KEYS = [OLD]
    Credential.objects.create(name="openai-main", value=SECRET)
    NotificationChannel.objects.create(name="chat", kind="slack", url="https://chat.example/T1")
    settings.DEXWEB_CREDENTIAL_KEYS = [NEW, OLD]
    Credential.objects.create(name="shop-key", value=SECRET)


def rotate(capsys, *words):
    """What it printed."""
    capsys.readouterr()
    call_command("rotate_credentials", *words)
    return capsys.readouterr().out


def test_afterwards_the_old_key_may_go(under_the_old, settings, capsys):
    said = rotate(capsys)
    assert said == "2 of 3 values were under an older key and are no more.\n"
    settings.DEXWEB_CREDENTIAL_KEYS = [NEW]
    assert {row.value for row in Credential.objects.all()} == {SECRET}
    assert NotificationChannel.objects.get().url == "https://chat.example/T1"
    assert rotate(capsys).startswith("0 of 3 values")


def test_a_check_counts_and_changes_nothing(under_the_old, settings, capsys):
    for _ in range(2):
        with pytest.raises(CommandError, match="before an older key goes"):
            rotate(capsys, "--check")
        assert capsys.readouterr().out.startswith("2 of 3 values are under an older key")
    rotate(capsys)
    assert rotate(capsys, "--check").startswith("0 of 3")


def test_what_no_key_opens_is_named_left_alone_and_the_others_are_done(
    under_the_old, settings, capsys
):
    settings.DEXWEB_CREDENTIAL_KEYS = [Fernet.generate_key().decode(), NEW]
    with pytest.raises(CommandError, match="value of the credential openai-main") as refusal:
        rotate(capsys)
    assert SECRET not in str(refusal.value)
    assert capsys.readouterr().out.startswith("1 of 3 values")
    settings.DEXWEB_CREDENTIAL_KEYS = [OLD]
    assert Credential.objects.get(name="openai-main").value == SECRET


def test_it_is_no_edit_of_the_credential(under_the_old, capsys):
    before = list(Credential.objects.without_value().values("revision", "updated_at"))
    rotate(capsys)
    assert list(Credential.objects.without_value().values("revision", "updated_at")) == before
