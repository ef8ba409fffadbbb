"""The audit log without its oldest entries: what is kept still shows whatever else was done to it."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from django.core.management import CommandError, call_command
from django.db import connections, transaction

from approvals_app import audit, audit_anchor, audit_prune
from approvals_app.models import AuditEntry, AuditHead
from tests.sessions_app.api import build

pytestmark = pytest.mark.django_db
KEEP = timedelta(days=30)


@pytest.fixture(autouse=True)
def var(settings, tmp_path):
    """Every test has files of its own."""
    settings.DEXWEB_VAR = tmp_path
    settings.DEXWEB_AUDIT_KEEP = KEEP
    return tmp_path


@pytest.fixture
def day(monkeypatch):
    """Makes it noon of that day of March."""

    def becomes(number):
        moment = datetime(2026, 3, 1, 12, tzinfo=UTC) + timedelta(days=number - 1)
        monkeypatch.setattr(audit.timezone, "now", lambda: moment)

    return becomes


@pytest.fixture
def committed(django_capture_on_commit_callbacks):
    """What is done within is remembered in the file, as after a commit."""
    return lambda: django_capture_on_commit_callbacks(execute=True)


@pytest.fixture
def log(day, committed):
    """Six entries, one a day; now it is the day on which the first three are too old."""
    ann = build.person("ann")
    with committed():
        for number in range(1, 7):
            day(number)
            audit.record(ann, "hold.taken", f"interrupt:i-{number}")
    day(34)
    return AuditEntry._base_manager.order_by("seq")


@pytest.fixture
def pruned(log, committed):
    with committed():
        audit_prune.prune_kept()
    return log


def numbers(entries):
    return list(entries.values_list("seq", flat=True))


def test_the_oldest_are_removed_and_the_rest_is_as_it_was_written(pruned, capsys):
    assert numbers(pruned) == [4, 5, 6, 7]
    call_command("verify_audit")
    assert "4 entries, after 3 that were pruned" in capsys.readouterr().out


def test_an_entry_says_by_which_way_how_many_and_until_when(log, committed, capsys):
    last_hash = log.get(seq=3).hash
    with committed():
        call_command("prune_audit", "--older-than=30d")
    assert "3 entries were older" in capsys.readouterr().out
    entry = log.get(seq=7)
    assert (entry.action, entry.via, entry.actor) == ("audit.pruned", "command", None)
    assert entry.detail == {
        "entries": 3,
        "first": 1,
        "through": 3,
        "last_hash": last_hash,
        "older_than": "2026-03-04T00:00:00+00:00",
    }


def test_what_is_old_is_removed_some_at_a_time_and_nothing_twice(log, committed, monkeypatch):
    monkeypatch.setattr(audit_prune, "AT_ONCE", 2)
    with committed():
        counts = [gone.count if (gone := audit_prune.prune_kept()) else 0 for _ in range(3)]
    assert counts == [2, 1, 0]
    assert audit.verify() is None


def test_a_log_may_be_pruned_to_its_end_and_goes_on(log, day, committed):
    day(90)
    with committed():
        audit_prune.prune_kept()
        audit.record(None, "hold.taken", "interrupt:i-9")
    assert numbers(log) == [7, 8]
    assert audit.verify() is None


def test_it_is_kept_for_ever_unless_asked_otherwise(log, settings):
    settings.DEXWEB_AUDIT_KEEP = None
    assert audit_prune.prune_kept() is None
    assert log.count() == 6


@pytest.mark.parametrize("text", ["0d", "400", "-1d", "", "d", "999999d", "1h"])
def test_a_period_that_is_no_number_of_days_is_refused(log, text):
    with pytest.raises(CommandError, match="Write a number of days, like 400d"):
        call_command("prune_audit", f"--older-than={text}")
    assert log.count() == 6


def test_without_its_anchor_on_the_disk_nothing_is_removed(log, var):
    (var / "audit.pruned").mkdir()
    with pytest.raises(CommandError, match="Nothing more is removed"):
        call_command("prune_audit", "--older-than=30d")
    assert numbers(log) == [1, 2, 3, 4, 5, 6]


def test_what_was_tampered_with_is_not_removed_but_said(log):
    log.filter(seq=2).update(actor_name="eve")
    with pytest.raises(CommandError, match="Entry 2 was changed"):
        call_command("prune_audit", "--older-than=30d")
    assert numbers(log) == [1, 2, 3, 4, 5, 6]


def test_a_prune_that_was_rolled_back_does_no_harm(log):
    with pytest.raises(ZeroDivisionError):
        _fail_after_pruning()
    assert numbers(log) == [1, 2, 3, 4, 5, 6]
    assert audit.verify() is None


def _fail_after_pruning():
    with transaction.atomic():
        audit_prune.prune_kept()
        raise ZeroDivisionError


@pytest.mark.django_db(transaction=True)
def test_several_at_once_remove_each_entry_once_and_others_go_on_recording(log):
    gate = threading.Barrier(3)

    def act(what):
        try:
            gate.wait()
            return what()
        finally:
            connections.close_all()

    def record():
        audit.record(None, "hold.taken", "interrupt:i-9")

    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(act, [audit_prune.prune_kept, audit_prune.prune_kept, record]))
    assert [gone.count for gone in found if gone] == [3]
    assert numbers(log) == [4, 5, 6, 7, 8]
    assert audit.verify() is None


# Whatever is done to the log after that ------------------------------------------------------


def changed(entries):
    entries.filter(seq=5).update(actor_name="eve")


def the_first_kept_removed(entries):
    entries.filter(seq=4).delete()


def more_cut_off_at_the_beginning(entries):
    """With the head row set to agree, as who has the database alone can do."""
    AuditHead.objects.update(pruned_seq=5, pruned_hash=entries.get(seq=5).hash)
    entries.filter(seq__lte=5).delete()


def more_cut_off_and_an_entry_that_tells_of_it(entries):
    more_cut_off_at_the_beginning(entries)
    entry = audit.record(None, "audit.pruned", "audit", through=5)
    audit_anchor.remember(entry.seq, entry.hash)


def another_beginning(entries):
    """The whole chain anew, from another past."""
    before = "f" * 64
    AuditHead.objects.update(pruned_hash=before)
    for entry in entries:
        entry.previous_hash = before
        before = audit.hash_of(entry)
        entries.filter(seq=entry.seq).update(previous_hash=entry.previous_hash, hash=before)
    AuditHead.objects.update(hash=before)


def put_back(entries):
    first = entries.get(seq=4)
    first.pk, first.seq = None, 3
    AuditEntry._base_manager.bulk_create([first])


def head_row_forgets_the_prune(entries):
    AuditHead.objects.update(pruned_seq=0, pruned_hash="")


def the_file_removed(entries):
    audit_anchor.pruned_path().unlink()


def cut_off_at_the_end(entries):
    entries.filter(seq=7).delete()
    AuditHead.objects.update(seq=6, hash=entries.get(seq=6).hash)


@pytest.mark.parametrize(
    ("tamper", "seq", "words"),
    [
        (changed, 5, "was changed"),
        (the_first_kept_removed, 4, "is missing"),
        (more_cut_off_at_the_beginning, 5, "no entry tells who pruned them"),
        (more_cut_off_and_an_entry_that_tells_of_it, 5, "audit.pruned does not know of it"),
        (another_beginning, 4, "is another than the one in audit.head"),
        (put_back, 3, "is there although it was pruned"),
        (head_row_forgets_the_prune, 1, "is missing"),
        (the_file_removed, 3, "audit.pruned does not know of it"),
        (cut_off_at_the_end, 7, "the log once went on to 7"),
    ],
)
def test_whatever_is_done_to_a_pruned_log_is_found(pruned, tamper, seq, words):
    tamper(pruned)
    with pytest.raises(CommandError, match=f"Entry {seq} .*{words}"):
        call_command("verify_audit")


def test_a_copy_of_the_database_is_verified_without_the_files(pruned, var, capsys):
    for file in var.glob("audit.*"):
        file.unlink()
    call_command("verify_audit", without_file=True)
    assert "4 entries, after 3" in capsys.readouterr().out


def test_the_page_says_what_is_gone(pruned, client):
    client.force_login(build.person("rita", "view_auditentry", "view_interrupt"))
    for address in ("/audit/", "/audit/?entry=2"):
        page = " ".join(client.get(address).content.decode().split())
        assert "Entries up to 3 are older than this log is kept" in page
