"""``manage.py worker``: run Steps until told to stop."""

import asyncio
import os
import signal
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from dexweb.engine.worker import serve


class Command(BaseCommand):
    requires_system_checks = []
    help = (
        "Run the Steps of sessions. SIGTERM or Ctrl-C stops it once running Steps had their grace."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--pool", default="default", help="the pool to serve")
        parser.add_argument("--slots", type=int, default=50, help="Steps at once")

    def handle(self, *args: Any, pool: str, slots: int, **options: Any) -> None:
        os.umask(0o077)
        asyncio.run(self._serve(pool, slots))

    async def _serve(self, pool: str, slots: int) -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for name in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(name, stop.set)
        self.stdout.write(f"Worker of the pool “{pool}” is ready for {slots} Steps at once.")
        await serve(pool, slots, stop)
