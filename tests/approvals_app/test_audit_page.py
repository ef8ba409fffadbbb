"""The page of the audit log: who may read it, what it finds, and what is taken away as a file."""

import csv
import io
import json
from datetime import UTC, datetime

import pytest
from django.test import AsyncClient

from approvals_app import audit, audit_export
from approvals_app.models import AuditEntry
from tests.sessions_app.api import build

pytestmark = pytest.mark.django_db
READ = ("view_auditentry", "view_interrupt")


@pytest.fixture
def client(client):
    client.force_login(build.person("rita", *READ, "export_audit"))
    return client


def at(monkeypatch, *moment):
    monkeypatch.setattr(audit.timezone, "now", lambda: datetime(*moment, tzinfo=UTC))


@pytest.fixture
def entries(monkeypatch):
    ann = build.person("ann")
    at(monkeypatch, 2026, 3, 1, 23, 59)
    audit.record(ann, "hold.taken", "interrupt:i-1", session_id="desk-1", taken_from="bob")
    at(monkeypatch, 2026, 3, 2, 0, 1)
    audit.record(ann, "deadline.extended", "interrupt:i-1", before="12:00", after="13:00")
    at(monkeypatch, 2026, 3, 3, 12)
    changes = {"tools.shop__*.risk": {"before": "high", "after": "low"}}
    audit.record(None, "agent.changed", "agent:desk", changes=changes)


def numbers(response):
    return [line.entry.seq for line in response.context["lines"]]


def test_only_who_may_read_it_finds_it(client, entries):
    assert "Audit log" in client.get("/audit/").content.decode()
    client.force_login(build.person("eve", "view_interrupt"))
    assert client.get("/audit/").status_code == 403
    assert "Audit log" not in client.get("/approvals/insight/").content.decode()


def test_an_entry_says_who_did_what_to_what_before_and_after(client, entries):
    page = " ".join(client.get("/audit/").content.decode().split())
    assert "<b>ann</b> moved the deadline" in page
    assert "<del>12:00</del>" in page
    assert "<ins>13:00</ins>" in page
    assert "<b>Dexweb</b> changed an agent" in page
    assert "<dt>tools.shop__*.risk</dt>" in page
    assert 'href="/approvals/i-1/"' in page
    assert '<tr id="entry-2">' in page


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("actor=ann", [2, 1]),
        ("action=hold", [1]),
        ("action=hold.taken", [1]),
        ("action=ho", []),
        ("subject=agent:desk", [3]),
        ("session=desk-1", [1]),
        ("since=2026-03-02", [3, 2]),
        ("until=2026-03-01", [1]),
        ("since=2026-03-02&until=2026-03-02", [2]),
        ("since=2026-03-02T00:01:00Z&until=2026-03-02T00:01:00Z", [2]),
        ("entry=1", [3, 2, 1]),
        ("limit=2", [3, 2]),
        ("actor=nobody", []),
        ("since=yesterday&until=2026-02-31", [3, 2, 1]),
        ("since=0001-01-01&until=9999-12-31&entry=99999999999999999999", [3, 2, 1]),
        ("actor=%00", [3, 2, 1]),
    ],
)
def test_filters(client, entries, query, found):
    assert numbers(client.get(f"/audit/?{query}")) == found


def test_what_was_not_understood_is_said(client, entries):
    assert "left out: since" in client.get("/audit/?since=yesterday").content.decode()


def test_the_log_is_read_page_by_page_under_its_filters(client, entries):
    first = client.get("/audit/?actor=ann&limit=1")
    second = client.get(f"/audit/?{first.context['next']}")
    assert (numbers(first), numbers(second)) == ([2], [1])


def test_what_somebody_wrote_is_shown_with_its_hidden_characters(client):
    audit.record(None, "hold.taken", "interrupt:i-1", reason="a\u202eb<script>")
    page = client.get("/audit/").content.decode()
    assert "\u202e" not in page
    assert "&lt;script&gt;" in page


def test_an_empty_log_says_what_it_is_for(client):
    assert "Nothing has been recorded yet" in client.get("/audit/").content.decode()


def test_a_page_takes_few_queries_whatever_it_shows(client, django_assert_max_num_queries):
    for number in range(50):
        audit.record(None, "hold.taken", f"interrupt:i-{number}")
    with django_assert_max_num_queries(8):
        assert len(numbers(client.get("/audit/"))) == 50


# Files ---------------------------------------------------------------------------------------


async def taken(address, *permissions):
    client = AsyncClient()
    from asgiref.sync import sync_to_async

    reader = await sync_to_async(build.person)("reader", *permissions)
    await client.aforce_login(reader)
    response = await client.get(address)
    if response.status_code != 200:
        return response, ""
    return response, b"".join([part async for part in response.streaming_content]).decode()


def three():
    audit.record(None, "hold.taken", "interrupt:i-1", reason="=HYPERLINK(1)")
    audit.record(None, "hold.taken", "=cmd|' /C calc'!A0")
    audit.record(None, "hold.released", "interrupt:i-1", reason="José, “so”\nsaid")


@pytest.mark.django_db(transaction=True)
async def test_a_csv_file_has_every_entry_and_no_formula():
    await _async(three)
    response, text = await taken("/audit/export.csv?action=hold", *READ, "export_audit")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["seq"] for row in rows] == ["3", "2", "1"]
    assert rows[1]["subject"] == "'=cmd|' /C calc'!A0"
    assert json.loads(rows[0]["detail"])["reason"] == "José, “so”\nsaid"
    assert response["Content-Disposition"].startswith('attachment; filename="audit-')
    last = await AuditEntry.objects.afirst()
    assert (last.action, last.actor_name) == ("audit.exported", "reader")
    assert last.detail == {"format": "csv", "filters": {"action": "hold"}}


@pytest.mark.django_db(transaction=True)
async def test_a_json_file_has_all_that_the_hashes_are_made_of(monkeypatch):
    await _async(three)
    _, text = await taken("/audit/export.json?action=hold", *READ, "export_audit")
    whole = json.loads(text)
    assert [entry["seq"] for entry in whole["entries"]] == [3, 2, 1]
    assert whole["entries"][0]["previous_hash"] == whole["entries"][1]["hash"]
    assert whole["older_left_out"] is False


@pytest.mark.django_db(transaction=True)
async def test_a_file_that_would_be_too_long_says_what_it_leaves_out(monkeypatch):
    monkeypatch.setattr(audit_export, "AT_MOST", 2)
    monkeypatch.setattr(audit_export, "CHUNK", 1)
    await _async(three)
    _, text = await taken("/audit/export.csv?action=hold", *READ, "export_audit")
    assert "Older entries were left out" in text
    assert text.count("interrupt:i-1") == 1


@pytest.mark.django_db(transaction=True)
async def test_a_file_takes_a_permission_of_its_own():
    response, _ = await taken("/audit/export.csv", *READ)
    assert response.status_code == 403


async def _async(act):
    from asgiref.sync import sync_to_async

    await sync_to_async(act)()
