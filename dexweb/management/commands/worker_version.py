"""``manage.py worker_version``: which version of the workers takes the sessions on."""

import asyncio
import os
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from temporalio.service import RPCError

from dexweb.engine import versions
from dexweb.engine.client import SessionEngine
from dexweb.engine.errors import EngineUnavailable

STATES = {
    "current": "takes the sessions on",
    "ramping": "takes {percent:g} % of the sessions on",
    "draining": "takes no more sessions on; what it has begun ends there",
    "drained": "has nothing to do any more",
}
NOT_YET = "takes no sessions yet"


class Command(BaseCommand):
    requires_system_checks = []
    help = "Shows the versions of workers, or says which one takes the sessions on."

    def run_from_argv(self, argv: list[str]) -> None:
        code: Any = 0
        try:
            super().run_from_argv(argv)
        except SystemExit as end:
            code = end.code
        sys.stdout.flush()
        sys.stderr.flush()
        # The engine client's threads may still be in Python: an orderly end of the interpreter
        # aborts the process now and then, after the work is done.
        os._exit(code if isinstance(code, int) else 1)

    def add_arguments(self, parser: CommandParser) -> None:
        change = parser.add_mutually_exclusive_group()
        change.add_argument(
            "--set-current",
            metavar="VERSION",
            help='takes all sessions on; "" for workers without a version',
        )
        change.add_argument(
            "--ramp",
            nargs=2,
            metavar=("VERSION", "PERCENT"),
            help="takes this share of the sessions on; 0 ends it",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            found = asyncio.run(self._changed(options["set_current"], options["ramp"]))
        except versions.VersionNotChanged as error:
            raise CommandError(str(error)) from None
        except (EngineUnavailable, RPCError, RuntimeError) as error:
            raise CommandError(f"The engine did not answer: {error}") from None
        if not found.known:
            self.stdout.write("No worker with a version has asked for work yet.")
        elif not found.current:
            self.stdout.write("Workers without a version take the sessions on.")
        for one in found.known:
            words = STATES.get(one.state, NOT_YET).format(percent=one.percent)
            self.stdout.write(f"{one.name}\t{one.state}\t{words}")

    async def _changed(self, current: str | None, ramp: list[str] | None) -> versions.Versions:
        client = await SessionEngine().client()
        if current is not None:
            await versions.set_current(client, current)
        if ramp is not None:
            await versions.ramp(client, ramp[0], _percent(ramp[1]))
        return await versions.versions(client)


def _percent(text: str) -> float:
    try:
        percent = float(text)
    except ValueError:
        percent = -1
    if not 0 <= percent <= 100:
        raise CommandError(f"“{text}” is not a share between 0 and 100 percent.")
    return percent
