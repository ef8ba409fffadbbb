"""SQLite with several writers: they take turns, and readers wait for nobody."""

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.conf import settings
from django.db import connection, connections, transaction
from django.test import Client
from rest_framework.test import APIClient

from sessions_app.models import Session
from tests.sessions_app.api import build

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        not settings.DATABASES["default"]["ENGINE"].endswith("sqlite3"), reason="SQLite only"
    ),
]


def pragma(name: str) -> object:
    with connection.cursor() as cursor:
        return cursor.execute(f"PRAGMA {name}").fetchone()[0]


@contextmanager
def a_writer_at_work(seconds: float) -> Iterator[None]:
    """Somebody else who has written and has not committed yet, for so long."""
    began = threading.Event()

    def write() -> None:
        with transaction.atomic():
            Session.objects.filter(pk="a").update(title="Theirs")
            began.set()
            time.sleep(seconds)
        connections.close_all()

    thread = threading.Thread(target=write)
    thread.start()
    assert began.wait(5)
    yield
    thread.join()


def test_it_writes_ahead_and_says_at_the_start_that_it_will_write():
    assert pragma("journal_mode") == "wal"
    assert pragma("busy_timeout") == 5000
    assert connection.transaction_mode == "IMMEDIATE"


def test_a_busy_writer_makes_another_wait_and_not_fail():
    build.session("a")
    build.session("b")
    with a_writer_at_work(0.6):
        began = time.monotonic()
        with transaction.atomic():
            row = Session.objects.select_for_update().get(pk="b")
            row.title = "Ours"
            row.save()
        waited = time.monotonic() - began
    assert 0.3 < waited < 4
    assert dict(Session.objects.values_list("pk", "title")) == {"a": "Theirs", "b": "Ours"}


def test_a_page_is_read_while_somebody_writes(client):
    build.session("a", title="Before")
    client.force_login(build.person("ann", *build.LOOK))
    with a_writer_at_work(1.5):
        began = time.monotonic()
        page = client.get("/sessions/a/").content.decode()
        assert time.monotonic() - began < 1
    assert "Before" in page


@contextmanager
def a_database_that_stays_locked() -> Iterator[None]:
    """Whoever wants to write waits for a moment and is told that it cannot."""
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA busy_timeout = 20")
    other = sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.close()
        connection.close()


def test_a_locked_database_is_no_error_of_the_api_but_busy_and_worth_another_try() -> None:
    client = APIClient()
    client.force_authenticate(build.person("ann", *build.OPERATE))
    with a_database_that_stays_locked():
        response = client.post(
            "/api/v1/sessions/", {"agent": "a", "message": "b"}, headers={"Idempotency-Key": "k"}
        )
    assert (response.status_code, response["Retry-After"]) == (503, "1")
    assert (response.json()["code"], response.json()["retryable"]) == ("database_busy", True)


@pytest.mark.parametrize("htmx", [False, True])
def test_a_locked_database_is_told_on_the_page_and_when_to_try_again(htmx: bool) -> None:
    client = Client()
    client.force_login(build.person("ann", *build.OPERATE))
    with a_database_that_stays_locked():
        headers = {"HX-Request": "true"} if htmx else {}
        response = client.post("/accounts/logout/", headers=headers)
    assert (response.status_code, response["Retry-After"]) == (503, "1")
    assert "The database is busy" in response.content.decode()
    assert ("<html" in response.content.decode()) is not htmx
