"""``manage.py rotate_credentials``: what is stored encrypted, under the newest key."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from sessions_app.rotation import rotate


class Command(BaseCommand):
    help = (
        "Encrypts credentials, and addresses and secrets of notification channels, anew with the "
        "first key of DEXWEB_CREDENTIAL_KEYS, so that older ones may go. Safe to repeat."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--check", action="store_true", help="change nothing; end with code 1 if any is left"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        check = options["check"]
        found = rotate(change=not check)
        what = "are under an older key" if check else "were under an older key and are no more"
        self.stdout.write(f"{found.older} of {found.values} values {what}.")
        if found.unreadable:
            raise CommandError(
                f"No key in force opens {len(found.unreadable)}: {', '.join(found.unreadable)}. "
                "Add the key that is missing and repeat this, or enter them anew."
            )
        if check and found.older:
            raise CommandError("Run this without --check before an older key goes.")
