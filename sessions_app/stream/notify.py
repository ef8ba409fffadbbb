"""Telling the tails of all web processes that a session has new events."""

from django.db import connection

CHANNEL = "dexweb_events"


def notify(session_id: str) -> None:
    """Call it inside the transaction that appends: PostgreSQL delivers at commit, or never.

    SQLite needs no word: every commit changes ``PRAGMA data_version``, which the tail looks at.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_notify(%s, %s)", [CHANNEL, session_id])
