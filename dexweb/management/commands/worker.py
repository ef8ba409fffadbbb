"""``manage.py worker``: run Steps until told to stop."""

import argparse
import asyncio
import os
import signal
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from dexweb.engine.worker import GRACE, MODEL_SLOTS, TOOL_SLOTS, PoolSettings, serve


class Command(BaseCommand):
    requires_system_checks = []
    help = (
        "Run the Steps of sessions. SIGTERM or Ctrl-C stops it once running Steps had their grace; "
        "a second one stops it at once."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--pool", type=_pool, default="default", help="the pool to serve")
        parser.add_argument("--slots", type=_count, default=TOOL_SLOTS, help="tool calls at once")
        parser.add_argument(
            "--model-slots", type=_count, default=MODEL_SLOTS, help="model calls at once"
        )
        parser.add_argument(
            "--grace",
            type=_seconds,
            default=GRACE,
            help="seconds that running Steps have to finish once it is stopped; what is left then "
            "is handed back",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        os.umask(0o077)
        given = PoolSettings(
            options["pool"], options["slots"], options["model_slots"], options["grace"]
        )
        asyncio.run(self._serve(given))

    async def _serve(self, given: PoolSettings) -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()

        def asked() -> None:
            stop.set()
            for name in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(name)
                signal.signal(name, signal.SIG_DFL)
            self._say(f"Stopping: running Steps have {given.grace:g} s. Ask again to stop at once.")

        for name in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(name, asked)
        self._say(
            f"Worker of the pool “{given.pool}” is ready for {given.tool_slots} tool calls and "
            f"{given.model_slots} model calls at once."
        )
        if version := settings.DEXWEB_WORKER_VERSION:
            self._say(
                f"It is of version “{version}” and gets sessions while that is current: "
                f"manage.py worker_version --set-current {version}"
            )
        await serve(given, stop)

    def _say(self, words: str) -> None:
        self.stdout.write(words)
        self.stdout.flush()


def _pool(text: str) -> str:
    if not text.replace("-", "").replace("_", "").isalnum() or not text.isascii():
        raise argparse.ArgumentTypeError(f"“{text}” is no pool: use letters, digits, - and _.")
    return text


def _count(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 10_000:
        raise argparse.ArgumentTypeError(f"“{text}” is no number of slots from 1 to 10000.")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 24 * 3600:
        raise argparse.ArgumentTypeError(f"“{text}” is no number of seconds from 0 to 86400.")
    return seconds
