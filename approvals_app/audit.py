"""The audit log: append-only and numbered, each entry bound to the one before by its hash.

The newest number and hash stand in `AuditHead`, outside the log, and in a file beside the database
(`audit_anchor`), so that entries cut off at the end are missed too; `verify` finds a changed, removed,
moved or cut-off entry. What `audit_prune` removed at the beginning is anchored in both likewise.
"""

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import rfc8785
from django.contrib.auth.models import AnonymousUser
from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from approvals_app import audit_anchor
from approvals_app.models import AuditEntry, AuditHead
from sessions_app.text import keepable

#: Where an entry can come from, and how that is said.
SURFACES = {
    "page": "on a page",
    "api:token": "over REST, with a token",
    "api:session": "over REST, signed in",
    "admin": "in the admin site",
    "command": "by a command on the server",
    "system": "by Dexweb itself",
}

MISSING = "is missing"

_via: ContextVar[str] = ContextVar("dexweb_audit_via", default="system")


@contextmanager
def via(surface: str) -> Iterator[None]:
    """Entries recorded inside come from ``surface``: a key of `SURFACES`.

    What is known more exactly already, like ``api:token`` of ``api``, stays so.
    """
    present = _via.get()
    token = _via.set(present if present.startswith(f"{surface}:") else surface)
    try:
        yield
    finally:
        _via.reset(token)


def surface() -> str:
    """Where entries come from right now."""
    return _via.get()


def record(
    actor: Any, action: str, subject: str, *, session_id: str = "", **detail: Any
) -> AuditEntry:
    """Append one entry. ``detail`` is JSON and holds no secret and no arguments, only their hash.

    It commits with the caller's transaction, so what was rolled back leaves no entry.
    """
    person = None if actor is None or isinstance(actor, AnonymousUser) else actor
    with transaction.atomic():
        AuditHead.objects.get_or_create(pk=1)
        head = AuditHead.objects.select_for_update().get(pk=1)
        entry = AuditEntry(
            seq=head.seq + 1,
            at=timezone.now(),
            actor=person,
            actor_name=person.get_username() if person else "",
            via=surface(),
            action=action,
            subject=subject[:160],
            session_id=session_id,
            detail=_keepable(detail),
            previous_hash=head.hash,
        )
        entry.hash = hash_of(entry)
        entry.save(force_insert=True)
        head.seq, head.hash = entry.seq, entry.hash
        head.save()
        transaction.on_commit(lambda: audit_anchor.remember(entry.seq, entry.hash))
    return entry


def record_once(
    actor: Any, action: str, subject: str, *, session_id: str = "", request_id: str, **detail: Any
) -> None:
    """As `record`, unless this request has its entry: it may be made again by whoever got no answer."""
    with transaction.atomic():
        AuditHead.objects.get_or_create(pk=1)
        AuditHead.objects.select_for_update().get(pk=1)
        if not recorded(action, subject, request_id):
            detail["request_id"] = request_id
            record(actor, action, subject, session_id=session_id, **detail)


def recorded(action: str, subject: str, request_id: str = "") -> bool:
    """Whether this request, or any one, has its entry."""
    entries = AuditEntry.objects.filter(action=action, subject=subject[:160])
    return (entries.filter(detail__request_id=request_id) if request_id else entries).exists()


def hash_of(entry: AuditEntry) -> str:
    """SHA-256 over everything that the entry says and over the hash before it."""
    said = {
        "seq": entry.seq,
        "at": entry.at.isoformat(),
        "actor": entry.actor_name,
        "via": entry.via,
        "action": entry.action,
        "subject": entry.subject,
        "session": entry.session_id,
        "detail": entry.detail,
        "previous": entry.previous_hash,
    }
    return hashlib.sha256(rfc8785.dumps(said)).hexdigest()


@dataclass(frozen=True)
class Finding:
    """``seq`` of the first entry that is not as it was written, and what is wrong with it."""

    seq: int
    problem: str


def verify(*, with_file: bool = True) -> Finding | None:
    """Walk the whole log, oldest first; None when every entry is as it was written.

    Without the files (``with_file=False``) an end or a beginning that was cut off, or a chain that
    was written anew, together with the head row stays unseen.
    """
    while True:
        pruned_before = _head().pruned_seq
        finding = _verify(with_file)
        # What was pruned while the log was read looks like missing entries: read it again.
        if finding is None or _head().pruned_seq == pruned_before:
            return finding


def pruned_through() -> int:
    """The number of the newest entry that was pruned; 0 for a log that is whole."""
    return _head().pruned_seq


def _head() -> AuditHead:
    return AuditHead.objects.filter(pk=1).first() or AuditHead()


def _verify(with_file: bool) -> Finding | None:
    """Entries may be added meanwhile: the file is read first, then the newest entry, then the head
    row, so each has what the one before it had.
    """
    remembered = audit_anchor.remembered() if with_file else {}
    newest = AuditEntry.objects.aggregate(newest=Max("seq"))["newest"] or 0
    head = _head()
    if head.seq < newest:
        return Finding(head.seq + 1, "is newer than the head row, which was set back")
    if remembered is None:
        if newest == 0 and head.seq == 0:
            return None
        return Finding(newest, f"cannot be held against {audit_anchor.path()}, which is not there")
    return _walk(head, remembered) or _check_beginning(head, remembered, with_file)


def _check_beginning(
    head: AuditHead, remembered: dict[int, set[str]], with_file: bool
) -> Finding | None:
    """Whether what is said to have been pruned was: by the log itself, and by both files."""
    seq, known = head.pruned_seq, {head.pruned_hash}
    if not seq:
        return None
    gone = "and all before it are gone, and {}: see “Kept for how long?” in docs/audit.md"
    if not AuditEntry.objects.filter(
        action="audit.pruned", seq__gt=seq, detail__through=seq
    ).exists():
        return Finding(seq, gone.format("no entry tells who pruned them"))
    if with_file and audit_anchor.pruned().get(seq) != known:
        return Finding(seq, gone.format(f"{audit_anchor.pruned_path()} does not know of it"))
    if remembered.get(seq, known) != known:
        return Finding(seq, f"is another than the one in {audit_anchor.NAME}")
    return None


def _walk(head: AuditHead, remembered: dict[int, set[str]]) -> Finding | None:
    rows = AuditEntry.objects.filter(seq__lte=head.seq).order_by("seq")
    last, finding = follow(head, rows.iterator(chunk_size=1000), remembered)
    if finding is not None:
        return finding
    newest = max(head.seq, *remembered, 0)
    if newest > last.seq:
        return Finding(last.seq + 1, f"is missing: the log once went on to {newest}")
    if head.hash != last.hash:
        return Finding(last.seq, "is another than the one in the head row")
    return None


@dataclass(frozen=True)
class Place:
    """How far the log was read: the number and hash that the next entry must follow."""

    seq: int
    hash: str


def follow(
    head: AuditHead, entries: Iterable[AuditEntry], remembered: dict[int, set[str]]
) -> tuple[Place, Finding | None]:
    """Read ``entries``, which begin with the oldest, as far as they are as they were written."""
    place = Place(head.pruned_seq, head.pruned_hash)
    for entry in entries:
        problem = _problem(entry, place, remembered)
        if problem == MISSING:
            return place, Finding(place.seq + 1, MISSING)
        if problem:
            return place, Finding(entry.seq, problem)
        place = Place(entry.seq, entry.hash)
    return place, None


def _problem(entry: AuditEntry, place: Place, remembered: dict[int, set[str]]) -> str:
    if entry.seq <= place.seq:
        return "is there although it was pruned"
    if entry.seq != place.seq + 1:
        return MISSING
    if entry.previous_hash != place.hash:
        return "does not follow the entry before it"
    if hash_of(entry) != entry.hash:
        return "was changed"
    if remembered.get(entry.seq, {entry.hash}) != {entry.hash}:
        return f"is another than the one in {audit_anchor.NAME}"
    return ""


def _keepable(value: Any) -> Any:
    if isinstance(value, str):
        return keepable(value)
    if isinstance(value, dict):
        return {keepable(str(name)): _keepable(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_keepable(item) for item in value]
    if isinstance(value, bool | float | None):
        return value
    if isinstance(value, int) and abs(value) < 2**53:
        return value
    # Dates, durations and very large numbers: JSON has no exact form that every database keeps.
    return str(value)
