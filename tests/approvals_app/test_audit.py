"""The audit log: what it holds, that nobody can change it unseen, and who may read it."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.core.management import CommandError, call_command
from django.db import connections

from approvals_app import audit, audit_anchor
from approvals_app.models import AuditEntry, AuditHead
from approvals_app.models.audit import AppendOnly
from tests.sessions_app.api import build

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def var(settings, tmp_path):
    """Every test has an `audit.head` of its own."""
    settings.DEXWEB_VAR = tmp_path
    return tmp_path


@pytest.fixture
def log(django_capture_on_commit_callbacks):
    """Six entries, written and committed."""
    ann = build.person("ann")
    with django_capture_on_commit_callbacks(execute=True):
        for number in range(1, 7):
            audit.record(ann, "hold.taken", f"interrupt:i-{number}", taken_from="bob")
    return AuditEntry._base_manager.order_by("seq")


def rewrite_from(entries, seq):
    """What somebody with the database alone could do: the chain anew from ``seq`` on."""
    before = entries.get(seq=seq - 1).hash
    for entry in entries.filter(seq__gte=seq):
        entry.previous_hash = before
        before = audit.hash_of(entry)
        entries.filter(seq=entry.seq).update(previous_hash=entry.previous_hash, hash=before)
    AuditHead.objects.update(hash=before)


def changed(entries):
    entries.filter(seq=3).update(detail={"taken_from": "eve"})


def somebody_else(entries):
    entries.filter(seq=3).update(actor_name="eve")


def removed_in_the_middle(entries):
    entries.filter(seq=3).delete()


def removed_and_closed_up(entries):
    entries.filter(seq=3).delete()
    for seq in (4, 5, 6):
        entries.filter(seq=seq).update(seq=seq - 1)


def cut_off(entries):
    entries.filter(seq__gte=5).delete()


def cut_off_with_the_head_row(entries):
    entries.filter(seq__gte=5).delete()
    last = entries.get(seq=4)
    AuditHead.objects.update(seq=4, hash=last.hash)


def head_row_set_back(entries):
    AuditHead.objects.update(seq=4, hash=entries.get(seq=4).hash)


def all_removed(entries):
    entries.delete()
    AuditHead.objects.all().delete()


def written_anew_from_the_middle(entries):
    entries.filter(seq=3).update(actor_name="eve")
    rewrite_from(entries, 3)


def cut_off_and_written_on(entries):
    cut_off_with_the_head_row(entries)
    entry = audit.record(None, "hold.taken", "interrupt:i-9")
    audit_anchor.remember(entry.seq, entry.hash)


@pytest.mark.parametrize(
    ("tamper", "seq", "words"),
    [
        (changed, 3, "was changed"),
        (somebody_else, 3, "was changed"),
        (removed_in_the_middle, 3, "is missing"),
        (removed_and_closed_up, 3, "does not follow the entry before it"),
        (cut_off, 5, "the log once went on to 6"),
        (cut_off_with_the_head_row, 5, "the log once went on to 6"),
        (head_row_set_back, 5, "is newer than the head row"),
        (all_removed, 1, "the log once went on to 6"),
        (written_anew_from_the_middle, 3, "is another than the one in audit.head"),
        (cut_off_and_written_on, 5, "is another than the one in audit.head"),
    ],
)
def test_whatever_was_done_to_the_log_is_found(log, tamper, seq, words):
    tamper(log)
    with pytest.raises(CommandError, match=f"Entry {seq} .*{words}") as refused:
        call_command("verify_audit")
    assert refused.value.returncode == 1


def test_a_log_as_it_was_written_is_said_to_be(log, capsys):
    call_command("verify_audit")
    assert "as it was written: 6 entries" in capsys.readouterr().out


def test_an_empty_log_is_well(capsys):
    call_command("verify_audit")
    assert "0 entries" in capsys.readouterr().out


def test_without_its_file_a_log_is_not_called_well_unless_that_is_asked_for(log, var, capsys):
    (var / "audit.head").unlink()
    with pytest.raises(CommandError, match="which is not there"):
        call_command("verify_audit")
    call_command("verify_audit", without_file=True)
    assert "6 entries" in capsys.readouterr().out


def test_the_file_stays_small_and_its_older_half_still_speaks(log, var, monkeypatch):
    monkeypatch.setattr(audit_anchor, "LIMIT", 100)
    for _ in range(3):
        entry = audit.record(None, "hold.taken", "interrupt:i-9")
        audit_anchor.remember(entry.seq, entry.hash)
    assert (var / "audit.head").stat().st_size < 300
    assert audit.verify() is None
    log.filter(seq__gte=8).delete()
    AuditHead.objects.update(seq=7, hash=log.get(seq=7).hash)
    assert audit.verify() == audit.Finding(8, "is missing: the log once went on to 9")


def test_what_was_rolled_back_is_in_no_log_and_no_file(log, var):
    entry = log.last()
    with pytest.raises(ZeroDivisionError):
        _fail_after_recording()
    assert audit.verify() is None
    assert log.last() == entry
    assert len((var / "audit.head").read_text().splitlines()) == 6


def _fail_after_recording():
    from django.db import transaction

    with transaction.atomic():
        audit.record(None, "hold.taken", "interrupt:i-9")
        raise ZeroDivisionError


def test_an_entry_cannot_be_changed_or_deleted_through_its_model(log):
    entry = AuditEntry.objects.get(seq=2)
    for attempt in (
        entry.save,
        entry.delete,
        AuditEntry.objects.all().delete,
        lambda: AuditEntry.objects.update(action="none"),
        lambda: AuditEntry.objects.bulk_update([entry], ["action"]),
    ):
        with pytest.raises(AppendOnly):
            attempt()
    assert audit.verify() is None


def test_an_entry_outlives_the_person_that_it_is_about(log):
    build.person("eve")
    audit.record(AuditEntry.objects.get(seq=1).actor, "hold.taken", "interrupt:i-9")
    AuditEntry.objects.get(seq=1).actor.delete()
    assert AuditEntry.objects.get(seq=1).actor_name == "ann"
    assert audit.verify() is None


@pytest.mark.django_db(transaction=True)
def test_many_at_once_are_numbered_without_a_gap_and_each_follows_the_one_before(var):
    gate = threading.Barrier(6)

    def write(worker):
        try:
            gate.wait()
            for number in range(10):
                audit.record(None, "hold.taken", f"interrupt:{worker}-{number}")
        finally:
            connections.close_all()

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(write, range(6)))
    numbers = list(AuditEntry.objects.order_by("seq").values_list("seq", flat=True))
    assert numbers == list(range(1, 61))
    assert audit.verify() is None
    assert len((var / "audit.head").read_text().splitlines()) == 60
