"""The newest entries of the audit log, remembered in a file beside the database.

Whoever can write to the database, but not to ``DEXWEB_VAR``, can make table and head row agree on a
log without its end, or on another one from some entry on. The lines here then speak against it. A
second file does the same for the log's beginning: it names what was pruned, so that no more can go.
"""

import fcntl
import logging
import os
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings

log = logging.getLogger(__name__)

NAME = "audit.head"
PRUNED = "audit.pruned"
#: About 14,000 entries; then the file becomes ``audit.head.1`` and a new one begins.
LIMIT = 1024 * 1024


def path() -> Path:
    return Path(settings.DEXWEB_VAR) / NAME


def older() -> Path:
    return path().with_name(f"{NAME}.1")


def pruned_path() -> Path:
    return path().with_name(PRUNED)


def remember(seq: int, entry_hash: str) -> None:
    """Append one entry. What cannot be written is said in the log: the entry itself is committed."""
    try:
        with _alone():
            if path().exists() and path().stat().st_size >= LIMIT:
                path().replace(older())
            file = os.open(path(), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(file, f"{seq} {entry_hash}\n".encode())
            finally:
                os.close(file)
    except OSError:
        log.exception("entry %s of the audit log is not remembered in %s", seq, path())


def remember_pruned(seq: int, entry_hash: str) -> None:
    """Append the newest entry of those about to be pruned; on the disk when this returns.

    Raises OSError: then nothing may be pruned.
    """
    with _alone():
        file = os.open(pruned_path(), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(file, f"{seq} {entry_hash}\n".encode())
            os.fsync(file)
        finally:
            os.close(file)


def pruned() -> dict[int, set[str]]:
    """What `remember_pruned` wrote. A prune that was rolled back may be among it."""
    found: dict[int, set[str]] = defaultdict(set)
    if pruned_path().exists():
        for number, entry_hash in _lines(pruned_path()):
            found[number].add(entry_hash)
    return dict(found)


def remembered() -> dict[int, set[str]] | None:
    """The hashes under each number; None without a file. Two under one number are a finding."""
    if not path().exists():
        return None
    found: dict[int, set[str]] = defaultdict(set)
    with _alone():
        for file in (older(), path()):
            if file.exists():
                for number, entry_hash in _lines(file):
                    found[number].add(entry_hash)
    return dict(found)


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    """What can be read; a line that a full disk cut off is none."""
    for line in file.read_text(encoding="ascii", errors="replace").splitlines():
        number, _, entry_hash = line.partition(" ")
        if number.isdigit() and len(entry_hash) == 64:
            yield int(number), entry_hash


@contextmanager
def _alone() -> Iterator[None]:
    """One process and thread at a time, so that a line is never written to a file just put away."""
    lock = os.open(path().with_name(f"{NAME}.lock"), os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
