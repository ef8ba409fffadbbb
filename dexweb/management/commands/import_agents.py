"""``manage.py import_agents FILE``: agents, connections and credentials from YAML."""

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from sessions_app.agents_yaml import InvalidAgents, load_agents


class Command(BaseCommand):
    help = "Create or change agents and connections as a YAML file describes them (- reads stdin)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", metavar="FILE")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            report = load_agents(_read(options["file"]))
        except InvalidAgents as error:
            lines = "\n".join(f"  {line}" for line in error.errors)
            raise CommandError(f"Nothing was imported:\n{lines}") from error
        for change in report.changes:
            self.stdout.write(f"{change.what} {change.kind} {change.name}")
        for warning in report.warnings:
            self.stderr.write(self.style.WARNING(f"note: {warning}"))


def _read(name: str) -> str:
    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{name} cannot be read: {error}") from error
