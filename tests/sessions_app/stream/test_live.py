"""While watching: each committed event once and in order, however slow one reads."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.backends.signals import connection_created

from sessions_app.models import AgentEvent, Session
from sessions_app.projection import locked
from sessions_app.stream.append import append
from tests.sessions_app.stream.conftest import in_database, make_session, put, size_of, write

WRITER = """
import django
django.setup()
from tests.sessions_app.stream.conftest import write
for n in range(60):
    write("s-1", f"{n}a", f"{n}b")
"""


def start_writer() -> subprocess.Popen[bytes]:
    database = connection.settings_dict
    url = f"sqlite:///{database['NAME']}"
    if connection.vendor == "postgresql":
        url = os.environ["DATABASE_URL"].replace("/postgres?", f"/{database['NAME']}?")
    return subprocess.Popen(
        [sys.executable, "-c", WRITER],
        cwd=Path(__file__).parents[3],
        env={**os.environ, "DATABASE_URL": url},
    )


async def test_no_event_is_lost_repeated_or_out_of_order_under_several_writing_processes(
    session: Session, watch: Any
) -> None:
    async with watch() as early, watch() as other:
        writers = [await in_database(start_writer)() for _ in range(2)]
        async with watch() as late:
            numbers = list(range(1, 241))
            assert await early.until(240) == numbers
            assert await other.until(240) == numbers
            assert await late.until(240) == numbers
        for writer in writers:
            assert await asyncio.to_thread(writer.wait, 20) == 0
    texts = sorted(event["payload"]["text"] for event in early.events)
    assert texts == sorted([f"{n}{part}" for n in range(60) for part in "ab"] * 2)
    assert all(frame["trimmed"] == [] for frame in early.frames + other.frames + late.frames)


async def test_a_change_that_is_rolled_back_sends_nothing(session: Session, watch: Any) -> None:
    def fail() -> None:
        with pytest.raises(RuntimeError), transaction.atomic(), locked("s-1") as row:
            append(row, "tool.started", {}, row.created_at)
            raise RuntimeError

    async with watch() as viewer:
        await in_database(fail)()
        assert await viewer.quiet()
        await put("s-1", "one")
        assert await viewer.until(1) == [1]
    assert viewer.events[0]["type"] == "tool.progress"


async def test_who_fetches_at_once_reads_what_the_event_speaks_of(
    session: Session, watch: Any
) -> None:
    def rename() -> None:
        with locked("s-1") as row:
            row.title = "Renamed"
            append(row, "session.compacted", {}, row.created_at)

    async with watch() as viewer:
        await in_database(rename)()
        await viewer.until(1)
        assert await in_database(lambda: Session.objects.get(pk="s-1").title)() == "Renamed"


async def test_live_pieces_that_were_trimmed_before_they_were_sent_are_named(
    session: Session, watch: Any
) -> None:
    def stream_and_complete() -> None:
        with transaction.atomic():
            with locked("s-1") as row:
                for type in ("model.started", "model.delta", "model.delta", "model.completed"):
                    append(row, type, {}, row.created_at, "RunModel-1")
            AgentEvent.objects.filter(session=row, type="model.delta").delete()

    async with watch() as viewer:
        await in_database(stream_and_complete)()
        assert await viewer.until(4) == [1, 4]
    assert viewer.frames[0]["trimmed"] == [[2, 3]]


async def test_nothing_more_is_sent_while_512_events_are_unacknowledged(
    session: Session, watch: Any
) -> None:
    async with watch() as viewer:
        await put("s-1", *(str(n) for n in range(600)))
        assert await viewer.until(512, ack=False) == list(range(1, 513))
        await put("s-1", *(str(n) for n in range(900)))
        assert await viewer.quiet()
        await viewer.say(type="ack", seq=512)
        assert await viewer.until(1500) == list(range(1, 1501))


async def test_nothing_more_is_sent_while_a_mebibyte_is_unacknowledged(
    session: Session, watch: Any
) -> None:
    async with watch() as viewer:
        for _ in range(3):
            await put("s-1", *["x" * 90_000] * 5)
        await viewer.until(11, ack=False)
        assert await viewer.quiet()
        assert size_of(viewer.frames) <= 1024 * 1024
        await viewer.say(type="ack", seq=11)
        assert await viewer.until(15) == list(range(1, 16))


async def test_a_slow_reader_holds_up_nobody_and_is_caught_up_later(
    session: Session, watch: Any
) -> None:
    async with watch() as slow, watch() as quick:
        for part in range(8):
            await put("s-1", *(str(n) for n in range(500)))
            await quick.until(500 * (part + 1))
        assert await slow.until(4000) == list(range(1, 4001))


@contextmanager
def counted_queries() -> Iterator[list[str]]:
    """The SQL of every connection that is opened meanwhile, in whatever thread."""
    seen: list[str] = []

    def note(execute: Any, sql: str, *rest: Any) -> Any:
        seen.append(sql)
        return execute(sql, *rest)

    def watch_it(connection: Any, **_: Any) -> None:
        if note not in connection.execute_wrappers:
            connection.execute_wrappers.append(note)

    connection_created.connect(watch_it)
    try:
        yield seen
    finally:
        connection_created.disconnect(watch_it)


@pytest.mark.parametrize("viewers", [1, 12])
async def test_all_sockets_of_a_session_share_one_read(
    session: Session, watch: Any, viewers: int
) -> None:
    with counted_queries() as queries:
        async with _several(watch, viewers) as watching:
            await put("s-1", "first")
            for viewer in watching:
                await viewer.until(1)
            queries.clear()
            await put("s-1", "second")
            for viewer in watching:
                await viewer.until(2)
            reads = [sql for sql in queries if sql.startswith("SELECT") and "agentevent" in sql]
    assert len(reads) == 1


async def test_a_session_that_nobody_watches_is_not_read(session: Session, watch: Any) -> None:
    await in_database(make_session)("s-2")
    with counted_queries() as queries:
        async with watch() as viewer:
            await put("s-1", "first")
            await viewer.until(1)
            queries.clear()
            await put("s-2", "elsewhere")
            assert await viewer.quiet()
            reads = [sql for sql in queries if sql.startswith("SELECT") and "agentevent" in sql]
    assert reads == []


async def test_a_session_that_is_deleted_closes_its_sockets(session: Session, watch: Any) -> None:
    async with watch() as viewer:
        await in_database(Session.objects.filter(pk="s-1").delete)()
        await in_database(write_elsewhere)()
        assert await viewer.close_code() == 4404


def write_elsewhere() -> None:
    make_session("s-2")
    write("s-2", "a commit")


class _several:
    """Several viewers of the session at once."""

    def __init__(self, watch: Any, count: int) -> None:
        self.watching = [watch() for _ in range(count)]

    async def __aenter__(self) -> list[Any]:
        return [await one.__aenter__() for one in self.watching]

    async def __aexit__(self, *problem: Any) -> None:
        for one in self.watching:
            await one.__aexit__(None, None, None)
