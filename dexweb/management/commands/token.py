"""``manage.py token USER``: the token that a program signs in with over REST."""

from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError
from rest_framework.authtoken.models import Token


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
        token, _ = Token.objects.get_or_create(user=user)
        self.stdout.write(token.key)
