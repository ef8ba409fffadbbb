"""``manage.py token USER``."""

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from rest_framework.authtoken.models import Token

pytestmark = pytest.mark.django_db


def printed(capsys, name):
    call_command("token", name)
    return capsys.readouterr().out


def test_only_the_token_is_printed_and_it_stays_the_same(capsys):
    user = User.objects.create_user("ada")
    first = printed(capsys, "ada")
    assert first == f"{Token.objects.get(user=user).key}\n"
    assert printed(capsys, "ada") == first


def test_the_token_signs_in_over_rest(capsys, client):
    User.objects.create_superuser("ada")
    token = printed(capsys, "ada").strip()
    assert client.get("/api/v1/sessions/").status_code == 401
    answer = client.get("/api/v1/sessions/", headers={"authorization": f"Token {token}"})
    assert answer.status_code == 200


def test_an_unknown_user_is_named():
    with pytest.raises(CommandError, match="no user “nobody”"):
        call_command("token", "nobody")


def test_a_user_who_may_not_sign_in_gets_none():
    User.objects.create_user("bob", is_active=False)
    with pytest.raises(CommandError, match="not active"):
        call_command("token", "bob")
    assert not Token.objects.exists()
