"""Imports agents, connections and credentials from YAML: all of a file, or nothing of it."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from django.core.exceptions import ValidationError
from django.db import models, transaction

from sessions_app.agent_rules import (
    model_errors,
    model_warning,
    settings_errors,
    unknown_agents,
)
from sessions_app.agents_file import (
    TURN_LIMITS,
    AgentEntry,
    AgentsFile,
    ConnectionEntry,
    CredentialEntry,
    InvalidAgents,
    read_agents,
)
from sessions_app.models import Agent, Connection, Credential, ToolPolicy
from sessions_app.models.encrypted import WrongCredentialKey
from sessions_app.policies_file import PLACES, ToolEntry
from sessions_app.spend.file import What, budgets_differ, set_budgets

__all__ = ["Change", "InvalidAgents", "Report", "load_agents"]

_EXAMPLE = "credentials: {{{}: {{from_env: VARIABLE}}}}"


@dataclass(frozen=True)
class Change:
    kind: Literal["credential", "connection", "agent", "budget"]
    name: str
    what: What


@dataclass
class Report:
    """What an import did, in the order of the file, and what it doubts."""

    changes: list[Change] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def load_agents(text: str, environ: Mapping[str, str] | None = None) -> Report:
    """Store what the YAML in ``text`` describes, by name; the same file again changes nothing.

    What the file does not name stays. Raises `InvalidAgents`, and then nothing is stored.
    """
    found, errors = read_agents(text)
    with transaction.atomic():
        report = Importer(found, errors, os.environ if environ is None else environ).run()
        if errors:
            raise InvalidAgents(errors)
    return report


class Importer:
    """One import, inside a transaction that its caller gives up when ``errors`` holds anything."""

    def __init__(self, found: AgentsFile, errors: list[str], environ: Mapping[str, str]) -> None:
        self.found, self.errors, self.environ = found, errors, environ
        self.report = Report()

    def run(self) -> Report:
        for credential in self.found.credentials:
            self._credential(credential)
        for connection in self.found.connections:
            self._connection(connection)
        for agent in self.found.agents:
            self._agent(agent)
        self._check_delegates()
        return self.report

    def _credential(self, entry: CredentialEntry) -> None:
        path = f"credentials.{entry.name}"
        value = self.environ.get(entry.from_env, "").strip() if entry.from_env else ""
        if not value:
            if entry.from_env:
                self.errors.append(
                    f"{path}.from_env: the environment variable {entry.from_env} is not set"
                )
            return
        row = Credential.objects.without_value().filter(name=entry.name).first()
        changed = row is None or row.base_url != entry.base_url or _value_of(row) != value
        row = row or Credential(name=entry.name)
        row.value, row.base_url = value, entry.base_url
        self._store("credential", path, row, changed)

    def _connection(self, entry: ConnectionEntry) -> None:
        path = f"connections.{entry.name}"
        row = Connection.objects.filter(name=entry.name).first() or Connection(name=entry.name)
        changed = row.pk is None
        changed |= _assign(row, entry.values, entry.enabled)
        changed |= _assign(row, {"credential": self._named_credential(entry.credential, path)})
        policies = [self._policy(tool, connection=row) for tool in entry.tools]
        changed |= row.pk is None or _policies_differ(row, policies)
        if self._store("connection", path, row, changed) and changed:
            _replace_policies(policies, connection=row)

    def _agent(self, entry: AgentEntry) -> None:
        path = f"agents.{entry.name}"
        if model := entry.values["model"]:
            self.errors += [f"{path}.model: {words}" for words in model_errors(model)]
            if doubt := model_warning(model):
                self.report.warnings.append(f"{path}.model: {doubt}")
        faults = settings_errors(model, entry.values["settings"])
        self.errors += [f"{path}.{words}" for words in faults]
        connections = self._named_connections(entry, path)
        row = Agent.objects.filter(name=entry.name).first() or Agent(name=entry.name)
        changed = row.pk is None
        changed |= _assign(row, entry.values, entry.enabled)
        changed |= _assign(row, {"credential": self._named_credential(entry.credential, path)})
        if not changed:
            changed = set(row.connections.all()) != set(connections)
        policies = [self._policy(tool, agent=row) for tool in entry.tools]
        self._doubt_tools(entry, connections)
        if row.pk is None or changed or _policies_differ(row, policies):
            changed = True
        changed |= budgets_differ(row, entry.budgets)
        if not self._store("agent", path, row, changed):
            return
        if changed:
            row.connections.set(connections)
            _replace_policies(policies, agent=row)
        for name, what in set_budgets(row, entry.budgets):
            self.report.changes.append(Change("budget", name, what))

    def _check_delegates(self) -> None:
        """They may stand further down in the file, or not in it at all."""
        for agent in self.found.agents:
            for name in unknown_agents(agent.values["delegates"]):
                if name not in {other.name for other in self.found.agents}:
                    self.errors.append(
                        f"agents.{agent.name}.delegates: there is no agent called “{name}”"
                    )

    def _policy(self, entry: ToolEntry, **owner: Agent | Connection) -> ToolPolicy:
        """``owner`` is ``agent=`` or ``connection=``."""
        policy = ToolPolicy(pattern=entry.pattern, **entry.values, **owner)

        def place(name: str) -> str:
            return f"{entry.path}.{PLACES[name]}" if name in PLACES else entry.path

        self._judge(policy, place, exclude={"agent", "connection"})
        return policy

    def _doubt_tools(self, entry: AgentEntry, connections: list[Connection]) -> None:
        names = {connection.name for connection in connections}
        for tool in entry.tools:
            prefix, mark, _ = tool.pattern.partition("__")
            if mark and prefix not in names and not set(prefix) & set("*?"):
                self.report.warnings.append(
                    f"{tool.path}: this agent has no connection called {prefix}"
                )
            if tool.pattern == "*" and not tool.values["needs_approval"]:
                self.report.warnings.append(f"{tool.path}: every tool runs without asking anyone")

    def _named_credential(self, name: str, path: str) -> Credential | None:
        if not name:
            return None
        row = Credential.objects.without_value().filter(name=name).first()
        if row is None and name not in {entry.name for entry in self.found.credentials}:
            self.errors.append(
                f"{path}.credential: there is no credential called “{name}”; add it in the admin "
                f"site under Credentials, or in this file as {_EXAMPLE.format(name)}"
            )
        return row

    def _named_connections(self, entry: AgentEntry, path: str) -> list[Connection]:
        rows = {row.name: row for row in Connection.objects.filter(name__in=entry.connections)}
        faulty = {given.name for given in self.found.connections}
        for name in entry.connections:
            if name not in rows and name not in faulty:
                self.errors.append(f"{path}.connections: there is no connection called “{name}”")
        return [rows[name] for name in entry.connections if name in rows]

    def _store(
        self, kind: Literal["credential", "connection", "agent"], path: str, row: Any, changed: bool
    ) -> bool:
        """Judges and saves ``row``; False when it is not fit to be saved."""
        what: Literal["created", "changed", "unchanged"] = "unchanged"
        if row.pk is None:
            what = "created"
        elif changed:
            what = "changed"
            row.revision += 1
        if not self._judge(row, lambda name: f"{path}.{_place(name)}" if name else path):
            return False
        if changed:
            row.save()
        self.report.changes.append(Change(kind, row.name, what))
        return True

    def _judge(
        self, row: models.Model, place: Callable[[str], str], exclude: set[str] | None = None
    ) -> bool:
        try:
            row.clean_fields(exclude=exclude)
            row.clean()
        except ValidationError as error:
            complaints = error.message_dict
            for name, messages in complaints.items():
                known = "" if name in ("__all__", "name", "pattern") else name
                self.errors += [f"{place(known)}: {message}" for message in messages]
            return False
        return True


def _place(name: str) -> str:
    """Where in the file a row's field stands."""
    if name in TURN_LIMITS:
        return f"limits.{name}"
    return f"model_calls.{name[6:]}" if name.startswith("model_") else name


def _value_of(credential: Credential) -> str:
    """The stored secret; "" when no key opens it, since then it must be stored anew anyway."""
    try:
        return str(credential.value)
    except WrongCredentialKey:
        return ""


def _assign(row: Any, values: dict[str, Any], enabled: bool | None = None) -> bool:
    """Sets the fields and says whether any of them was another."""
    given = values if enabled is None else {**values, "enabled": enabled}
    changed = any(getattr(row, name) != value for name, value in given.items())
    for name, value in given.items():
        setattr(row, name, value)
    return changed


def _policy_values(policy: ToolPolicy) -> tuple[Any, ...]:
    names = ("pattern", "enabled", "effect", "needs_approval", "timeout", *PLACES)
    return tuple(getattr(policy, name) for name in names)


def _policies_differ(owner: Agent | Connection, policies: list[ToolPolicy]) -> bool:
    stored = sorted(owner.tools.all(), key=_by_pattern)
    given = sorted(policies, key=_by_pattern)
    return [*map(_policy_values, stored)] != [*map(_policy_values, given)]


def _by_pattern(policy: ToolPolicy) -> str:
    return policy.pattern


def _replace_policies(policies: list[ToolPolicy], **owner: Agent | Connection) -> None:
    ToolPolicy.objects.filter(**owner).delete()
    for policy in policies:
        for name, row in owner.items():
            setattr(policy, name, row)
    ToolPolicy.objects.bulk_create(policies)
