"""What a supervisor and a load balancer are told."""

import pytest
from django.conf import settings as live_settings
from django.db import connection


def test_a_living_process_says_so_without_looking_at_anything(client, settings):
    # No database mark on this test: a query would fail it.
    settings.DEXWEB_TEMPORAL_ADDRESS = "127.0.0.1:1"
    answer = client.get("/healthz")
    assert (answer.status_code, answer.content) == (200, b"ok\n")


@pytest.mark.django_db
def test_readiness_fails_while_the_engine_is_away_and_recovers_with_it(
    client, settings, temporal_engine
):
    settings.DEXWEB_TEMPORAL_ADDRESS = "127.0.0.1:1"
    away = client.get("/readyz")
    assert away.status_code == 503
    checks = away.json()["checks"]
    assert (checks["database"], checks["migrations"]) == ("ok", "ok")
    assert checks["engine"] != "ok"
    live_settings.DEXWEB_TEMPORAL_ADDRESS = temporal_engine.address
    back = client.get("/readyz")
    assert back.json() == {
        "ready": True,
        "checks": {"database": "ok", "migrations": "ok", "engine": "ok"},
    }


@pytest.mark.django_db
def test_readiness_counts_migrations_that_are_still_to_run(client, settings):
    settings.DEXWEB_TEMPORAL_ADDRESS = "127.0.0.1:1"
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM django_migrations WHERE app = 'approvals_app' AND name = "
            "(SELECT MAX(name) FROM django_migrations WHERE app = 'approvals_app')"
        )
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["checks"]["migrations"] == "1 pending: run manage.py migrate"


@pytest.mark.django_db
def test_neither_asks_anybody_to_sign_in_nor_takes_a_post(client):
    for address in ("/healthz", "/readyz", "/healthz/", "/readyz/"):
        assert client.post(address).status_code == 405
