"""``manage.py engine``: the embedded engine alone, in the foreground."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from dexweb.engine import embedded
from dexweb.supervisor import open_log, stop_signals_interrupt


class Command(BaseCommand):
    help = "Runs the engine that comes with Dexweb, for a worker and a web server started apart."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("--port", type=int, help="the port to serve on; a free one by default")

    def handle(self, *args: Any, **options: Any) -> None:
        stop_signals_interrupt()
        var = settings.DEXWEB_VAR
        log = open_log(var, "engine")
        engine = None
        try:
            engine = embedded.start(var, options["port"], log, settings.DEXWEB_TEMPORAL_NAMESPACE)
            self.stdout.write(f"The engine serves at {engine.address}; its log is {log}.")
            self.stdout.flush()
            code = engine.process.wait()
        except KeyboardInterrupt:
            return
        except embedded.EngineNotStarted as error:
            raise CommandError(str(error)) from None
        finally:
            if engine:
                engine.stop()
        raise CommandError(f"The engine ended with exit code {code}; see {log}.")
