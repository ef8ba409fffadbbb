"""SQLite with several writers: they take turns, and readers wait for nobody."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.conf import settings
from django.db import connection, connections, transaction

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
