"""``manage.py verify_audit``: is the audit log as it was written?"""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from approvals_app import audit, audit_anchor
from approvals_app.models import AuditEntry


class Command(BaseCommand):
    help = (
        "Compares the audit log with its hashes, its head row and the files beside it; says the "
        "first entry that was changed, removed or cut off, and then ends with code 1."
    )

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument(
            "--without-file",
            action="store_true",
            help="on a machine that has no audit.head, such as one with a copy of the database",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        with_file = not options["without_file"]
        finding = audit.verify(with_file=with_file)
        if finding is not None:
            raise CommandError(f"Entry {finding.seq} {finding.problem}.")
        count = AuditEntry.objects.count()
        pruned = audit.pruned_through()
        after = f", after {pruned:,} that were pruned" if pruned else ""
        known = f" and {audit_anchor.path()}" if with_file and count else ""
        self.stdout.write(
            f"The audit log is as it was written: {count:,} entries{after}; the head row{known} agree."
        )
