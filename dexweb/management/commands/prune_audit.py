"""``manage.py prune_audit --older-than 400d``: the audit log without its oldest entries."""

from argparse import ArgumentTypeError
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from approvals_app import audit
from approvals_app.audit_prune import NotAsWritten, prune
from dexweb.periods import whole_days


def _keep(text: str) -> timedelta:
    try:
        return whole_days(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from error


class Command(BaseCommand):
    help = (
        "Removes entries of the audit log that are older; keeps the number and hash of the last of "
        "them, so that verify_audit still finds whatever else is done to the log."
    )

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument(
            "--older-than", type=_keep, required=True, metavar="DAYS", help="like 400d"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        count = 0
        try:
            with audit.via("command"):
                while (gone := prune(options["older_than"])) is not None:
                    count += gone.count
        except (NotAsWritten, OSError) as error:
            raise CommandError(
                f"{error} Nothing more is removed until this is looked into; {count:,} were."
            ) from error
        self.stdout.write(f"{count:,} entries were older and are removed.")
