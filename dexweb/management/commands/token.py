"""``manage.py token USER``: the token that a program signs in with over REST."""

from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction
from rest_framework.authtoken.models import Token

from approvals_app import audit


class Command(BaseCommand):
    help = "Prints a user's API token, made now if there is none. Keep it as you keep a password."

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("user", help="the user's name")

    def handle(self, *args: Any, **options: Any) -> None:
        name = options["user"]
        user = get_user_model().objects.filter(username=name).first()
        if user is None:
            raise CommandError(f"There is no user “{name}”.")
        if not user.is_active:
            raise CommandError(
                f"The user “{name}” is not active, so a token would not be accepted."
            )
        with transaction.atomic(), audit.via("command"):
            token, made = Token.objects.get_or_create(user=user)
            audit.record(None, "token.made" if made else "token.shown", f"user:{name}")
        self.stdout.write(token.key)
