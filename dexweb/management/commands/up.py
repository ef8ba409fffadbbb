"""``manage.py up``: engine, worker and web server in one process tree, ready for a first look."""

import http.client
import json
import os
import sys
from pathlib import Path
from typing import Any

from asgiref.sync import async_to_sync
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connections

from dexweb import supervisor
from dexweb.engine import embedded
from dexweb.engine.client import SessionEngine
from dexweb.engine.errors import EngineStateUnreadable, EngineUnavailable
from dexweb.keys import credential_keys
from dexweb.management.commands.seed_users import words_for_sign_in

HOST = "127.0.0.1"
ENGINE_LIMIT = 30.0
READY_LIMIT = 90.0
# That of its own worker.
POOL = "default"
# What running Steps have once the worker is told to stop, in seconds; it then hands them back.
GRACE = 10
WORKER_STOP_LIMIT = GRACE + 3.0
STOP_LIMIT = WORKER_STOP_LIMIT + 4.0


class Command(BaseCommand):
    help = "Runs everything: the engine, a worker and the web server. Ctrl-C stops all of it."
    # The database is made by this command, and checked after that.
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        # Databases and logs hold what people and agents said: nobody else's to read.
        os.umask(0o077)
        supervisor.stop_signals_interrupt()
        tree = supervisor.Supervisor(self.say, limit=STOP_LIMIT)
        try:
            with supervisor.claim(settings.DEXWEB_VAR, self.address()):
                try:
                    self.start(tree)
                    tree.watch()
                finally:
                    self.stop(tree)
        except KeyboardInterrupt:
            self.say("Stopped.")
        except (supervisor.CannotStart, embedded.EngineNotStarted) as error:
            raise CommandError(str(error)) from None

    def start(self, tree: supervisor.Supervisor) -> None:
        supervisor.check_port(HOST, settings.DEXWEB_PORT)
        Path(settings.STATIC_ROOT).mkdir(exist_ok=True)
        self.say("Preparing the database …")
        call_command("migrate", interactive=False, verbosity=0)
        credential_keys(settings.DEXWEB_VAR, settings.DEXWEB_CREDENTIAL_KEYS)
        self.start_engine(tree)
        self.say("Starting the worker and the web server …")
        tree.start(
            self.child("worker", ["manage.py", "worker", "--grace", str(GRACE)], WORKER_STOP_LIMIT)
        )
        port = str(settings.DEXWEB_PORT)
        # Verbosity 0: no access log, since request lines carry search words and cursors.
        daphne = ["-m", "daphne", "-v", "0", "-b", HOST, "-p", port, "dexweb.asgi:application"]
        tree.start(self.child("web", daphne, 1.5))
        tree.wait_for("Dexweb was ready", web_is_ready, READY_LIMIT)
        left_out = why_left_out()
        sign_in = self.seed(examples=not left_out) if settings.DEXWEB_DEMO else ""
        connections.close_all()
        self.say(f"Dexweb is ready at {self.address()}{sign_in}")
        if left_out:
            self.say(left_out)
        if key_is_missing():
            self.say(EngineStateUnreadable.why)

    def start_engine(self, tree: supervisor.Supervisor) -> None:
        address = settings.DEXWEB_TEMPORAL_ADDRESS
        namespace = settings.DEXWEB_TEMPORAL_NAMESPACE
        if address:
            self.say(f"Waiting for the engine at {address} …")
            try:
                tree.wait_for(
                    f"the engine at {address} served",
                    lambda: embedded.serves(address, namespace),
                    ENGINE_LIMIT,
                )
            except supervisor.CannotStart:
                raise supervisor.CannotStart(
                    f"The engine at {address} (DEXWEB_TEMPORAL_ADDRESS) cannot be reached, or has "
                    f"no namespace “{namespace}”. Start it, or unset the variable to use the "
                    "engine that comes with Dexweb."
                ) from None
            return
        self.say("Starting the engine …")
        var, port = settings.DEXWEB_VAR, embedded.free_port()
        log = supervisor.open_log(var, "engine")
        # The same port at every start, so that worker and web find it again.
        launch = lambda: embedded.start(var, port, log, namespace).process  # noqa: E731
        tree.start(supervisor.Child("engine", log, launch, 1.5))

    def child(self, name: str, words: list[str], stop_limit: float) -> supervisor.Child:
        log = supervisor.open_log(settings.DEXWEB_VAR, name)
        launch = supervisor.command(
            [sys.executable, *words], log, Path(settings.BASE_DIR), supervisor.environment()
        )
        return supervisor.Child(name, log, launch, stop_limit)

    def seed(self, examples: bool) -> str:
        """``examples`` False: the next start makes them, since no session would go on now."""
        self.say("Filling in the demo …")
        call_command("seed_users", verbosity=0)
        try:
            if examples:
                call_command("seed_demo", stdout=self.stdout)
        except CommandError as error:
            # Dexweb works without its examples; the next start tries again.
            self.say(f"The demo is not complete: {error}")
        return f" ({words_for_sign_in()})"

    def stop(self, tree: supervisor.Supervisor) -> None:
        tree.stop()
        if not settings.DEXWEB_TEMPORAL_ADDRESS:
            embedded.forget(settings.DEXWEB_VAR)

    def address(self) -> str:
        return f"http://{HOST}:{settings.DEXWEB_PORT}/"

    def say(self, words: str) -> None:
        self.stdout.write(words)
        self.stdout.flush()


def why_left_out() -> str:
    """Why the worker gets nothing to do, and what to do; "" where it does or the engine cannot say."""
    own = settings.DEXWEB_WORKER_VERSION
    try:
        found = async_to_sync(SessionEngine(timeout=5).backlogs)([POOL])
    except EngineUnavailable:
        return ""
    given_to = found[POOL].flow.given_to
    if own in given_to:
        return ""
    wanted = f"of version “{given_to[0]}”" if given_to[0] else "without a version"
    return (
        f"But sessions stand still: they are given to workers {wanted}, and this one "
        f"{f'is of version “{own}”' if own else 'has none'}. To give them to it:\n"
        f'  {sys.executable} manage.py worker_version --set-current "{own}"'
    )


def web_is_ready() -> bool:
    """Whether it can serve. Its pages also serve those who look for a key that is missing."""
    checks = readiness()
    return bool(checks) and all(word == "ok" or is_key(word) for word in checks.values())


def key_is_missing() -> bool:
    return any(map(is_key, readiness().values()))


def is_key(word: str) -> bool:
    return word.startswith(EngineStateUnreadable.code)


def readiness() -> dict[str, str]:
    """What /readyz says of each check, asked under a name that the site allows; {} for no answer."""
    names = [name for name in settings.ALLOWED_HOSTS if name != "*" and not name.startswith(".")]
    connection = http.client.HTTPConnection(HOST, settings.DEXWEB_PORT, timeout=5)
    try:
        connection.request("GET", "/readyz", headers={"Host": names[0] if names else HOST})
        checks: dict[str, str] = json.loads(connection.getresponse().read())["checks"]
        return checks
    except (OSError, http.client.HTTPException, ValueError, KeyError):
        return {}
    finally:
        connection.close()
