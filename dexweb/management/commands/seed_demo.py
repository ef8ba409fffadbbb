"""``manage.py seed_demo``: agents and sessions to look at, made once."""

from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError

from dexweb.engine.errors import DexwebError
from sessions_app.demo import seed


class Command(BaseCommand):
    help = "Make the demo's agents and sessions, unless they are there. Needs a worker."

    def handle(self, *args: Any, **options: Any) -> None:
        user = User.objects.filter(username="demo").first()
        if user is None:
            raise CommandError("There is no user “demo”; run `manage.py seed_users` first.")
        seed.agents(settings.DEXWEB_VAR)
        try:
            seed.sessions(user, lambda words: self.stdout.write(words))
        except (seed.SeedFailed, DexwebError) as error:
            raise CommandError(str(error)) from error
