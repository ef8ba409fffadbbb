"""The audit log as a file: CSV or JSON, written while it is read, at most 100,000 entries."""

import csv
import io
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

from asgiref.sync import sync_to_async
from django.db.models import QuerySet

from approvals_app.models import AuditEntry

AT_MOST = 100_000
CHUNK = 1000
COLUMNS = (
    "seq",
    "at",
    "actor",
    "via",
    "action",
    "subject",
    "session",
    "detail",
    "previous_hash",
    "hash",
)
LEFT_OUT = "Older entries were left out: narrow the dates to get them."


def as_json(entry: AuditEntry) -> dict[str, Any]:
    """All that an entry's hash is made of, and both hashes."""
    return {
        "seq": entry.seq,
        "at": entry.at.isoformat(),
        "actor": entry.actor_name,
        "via": entry.via,
        "action": entry.action,
        "subject": entry.subject,
        "session": entry.session_id,
        "detail": entry.detail,
        "previous_hash": entry.previous_hash,
        "hash": entry.hash,
    }


async def csv_lines(rows: QuerySet[AuditEntry]) -> AsyncIterator[str]:
    """Newest first. No cell is a formula for a spreadsheet that opens the file."""
    yield _csv(COLUMNS)
    async for chunk in _chunks(rows):
        yield "".join(_csv(_cells(entry)) for entry in chunk) if chunk else _csv([LEFT_OUT])


async def json_lines(rows: QuerySet[AuditEntry]) -> AsyncIterator[str]:
    """One JSON object with ``entries``, newest first, and ``older_left_out``."""
    yield '{"entries": ['
    before, left_out = "\n", False
    async for chunk in _chunks(rows):
        left_out = not chunk
        if chunk:
            yield before + ",\n".join(
                json.dumps(as_json(entry), ensure_ascii=False) for entry in chunk
            )
            before = ",\n"
    yield f'\n], "older_left_out": {json.dumps(left_out)}}}\n'


async def _chunks(rows: QuerySet[AuditEntry]) -> AsyncIterator[list[AuditEntry]]:
    """Read by number, a thousand at a time, so that no transaction stays open for a slow reader.

    An empty chunk at the end says that there are older ones, which were left out.
    """
    left, place = AT_MOST, None
    while left:
        here = rows if place is None else rows.filter(seq__lt=place)
        chunk = await sync_to_async(_read)(here.order_by("-seq")[: min(CHUNK, left)])
        if chunk:
            yield chunk
        if len(chunk) < CHUNK:
            return
        left -= len(chunk)
        place = chunk[-1].seq
    if await sync_to_async(rows.filter(seq__lt=place).exists)():
        yield []


def _read(rows: QuerySet[AuditEntry]) -> list[AuditEntry]:
    return list(rows)


def _cells(entry: AuditEntry) -> Iterator[str]:
    values = as_json(entry)
    for name in COLUMNS:
        value = values[name]
        yield json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else str(value)


def _csv(cells: Any) -> str:
    text = io.StringIO()
    csv.writer(text).writerow([_plain(cell) for cell in cells])
    return text.getvalue()


def _plain(cell: str) -> str:
    """A spreadsheet takes what begins so for a formula; a quote before it makes it a text."""
    first = cell.lstrip()[:1]
    return f"'{cell}" if first in ("=", "+", "-", "@") or cell[:1] in ("\t", "\r", "\n") else cell
