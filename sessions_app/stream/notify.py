"""Wakes the tails of other processes when a commit holds new events."""

from django.db import connection


def notify(session_id: str) -> None:
    """Tell listeners, at commit, that ``session_id`` has news. SQLite needs no telling."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_notify('dexweb_events', %s)", [session_id])
