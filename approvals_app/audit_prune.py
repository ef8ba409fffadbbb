"""Removes the oldest entries of the audit log, so that what is left can still be verified.

The number and hash of the last one removed stand in the head row and in the file ``audit.pruned``;
the first one that is kept follows it. An entry of its own says how many went.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import takewhile

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from approvals_app import audit, audit_anchor
from approvals_app.models import AuditEntry, AuditHead

#: Removed in one transaction, which whoever records something waits for.
AT_ONCE = 5000


@dataclass(frozen=True)
class Pruned:
    first: int
    through: int

    @property
    def count(self) -> int:
        return self.through - self.first + 1


class NotAsWritten(Exception):
    """What should be removed was tampered with: it stays, as that is what speaks of it."""

    def __init__(self, finding: audit.Finding) -> None:
        super().__init__(f"Entry {finding.seq} {finding.problem}.")


def prune_kept() -> Pruned | None:
    """What ``DEXWEB_AUDIT_KEEP`` asks for, at most `AT_ONCE`; None where nothing is that old."""
    keep: timedelta | None = settings.DEXWEB_AUDIT_KEEP
    return prune(keep) if keep else None


def prune(keep: timedelta) -> Pruned | None:
    """Remove the oldest entries, at most `AT_ONCE`, that are older than ``keep`` in whole days.

    Raises NotAsWritten, and OSError when ``audit.pruned`` cannot be written; nothing is removed then.
    Safe beside others who do the same, and beside `audit.record`.
    """
    until = _midnight(timezone.now() - keep)
    oldest = AuditEntry.objects.order_by("seq").first()
    return _prune(until) if oldest is not None and oldest.at < until else None


@transaction.atomic
def _prune(until: datetime) -> Pruned | None:
    head = AuditHead.objects.select_for_update().get(pk=1)
    oldest = AuditEntry.objects.order_by("seq")[:AT_ONCE]
    old = list(takewhile(lambda entry: entry.at < until, oldest))
    if not old:  # Another worker was first.
        return None
    last, finding = audit.follow(head, old, audit_anchor.remembered() or {})
    if finding is not None:
        raise NotAsWritten(finding)
    audit_anchor.remember_pruned(last.seq, last.hash)
    # Past the model's own manager, which refuses: this is the one place that removes entries.
    AuditEntry._base_manager.filter(seq__lte=last.seq).delete()
    head.pruned_seq, head.pruned_hash = last.seq, last.hash
    head.save()
    gone = Pruned(old[0].seq, last.seq)
    audit.record(
        None,
        "audit.pruned",
        "audit",
        entries=gone.count,
        first=gone.first,
        through=gone.through,
        last_hash=last.hash,
        older_than=until.isoformat(),
    )
    return gone


def _midnight(moment: datetime) -> datetime:
    """Whole days, so that a log that is pruned all the time gets one entry of it a day."""
    return timezone.localtime(moment).replace(hour=0, minute=0, second=0, microsecond=0)
