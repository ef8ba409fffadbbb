"""``manage.py import_agents FILE``: agents, connections and credentials from YAML."""

import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction
from django.db.models import Model

from approvals_app import audit
from approvals_app.audit_changes import record_change, snapshot
from sessions_app.agents_yaml import InvalidAgents, Report, load_agents
from sessions_app.models import Agent, Connection, Credential, SpendBudget


class Command(BaseCommand):
    help = "Create or change agents and connections as a YAML file describes them (- reads stdin)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", metavar="FILE")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            report = _imported(_read(options["file"]))
        except InvalidAgents as error:
            lines = "\n".join(f"  {line}" for line in error.errors)
            raise CommandError(f"Nothing was imported:\n{lines}") from error
        for change in report.changes:
            self.stdout.write(f"{change.what} {change.kind} {change.name}")
        for warning in report.warnings:
            self.stderr.write(self.style.WARNING(f"note: {warning}"))


@transaction.atomic
def _imported(text: str) -> Report:
    """Imports, and puts each change into the audit log. Raises `InvalidAgents`."""
    before = {(type(row), row.pk): (row, snapshot(row, parts)) for row, parts in _rows()}
    secrets = dict(Credential.objects.values_list("pk", "revision"))
    report = load_agents(text)
    with audit.via("command"):
        for row, parts in _rows():
            stored_anew = isinstance(row, Credential) and secrets.get(row.pk) != row.revision
            _, was = before.pop((type(row), row.pk), (row, {}))
            record_change(None, row, was, snapshot(row, parts), ("value",) if stored_anew else ())
        for row, was in before.values():
            record_change(None, row, was, {})
    return report


def _rows() -> Iterator[tuple[Model, tuple[str, ...]]]:
    for credential in Credential.objects.without_value():
        yield credential, ()
    for model in (Connection, Agent):
        for row in model.objects.all():
            yield row, ("tools",)
    for budget in SpendBudget.objects.all():
        yield budget, ()


def _read(name: str) -> str:
    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{name} cannot be read: {error}") from error
