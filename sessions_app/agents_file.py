"""Agents as YAML, read and judged: every error names its place in the file. Stores nothing."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import yaml

from sessions_app.tools.durations import parse_duration

LIMIT = 4 * 1024 * 1024
PATTERN = re.compile(r"[A-Za-z0-9_*?-]{1,160}")


class InvalidAgents(Exception):
    """The file as it stands cannot be imported; ``errors`` are lines like "agents.x.model: …"."""

    def __init__(self, errors: list[str]) -> None:
        super().__init__("\n".join(errors))
        self.errors = errors


@dataclass(frozen=True)
class CredentialEntry:
    name: str
    from_env: str
    base_url: str


@dataclass(frozen=True)
class ConnectionEntry:
    """``values`` are the row's own fields; None of `enabled` keeps what is there."""

    name: str
    values: dict[str, Any]
    credential: str
    enabled: bool | None


@dataclass(frozen=True)
class ToolEntry:
    pattern: str
    values: dict[str, Any]
    path: str


@dataclass(frozen=True)
class AgentEntry:
    name: str
    values: dict[str, Any]
    credential: str
    connections: list[str]
    enabled: bool | None
    tools: list[ToolEntry]


@dataclass
class AgentsFile:
    credentials: list[CredentialEntry] = field(default_factory=list)
    connections: list[ConnectionEntry] = field(default_factory=list)
    agents: list[AgentEntry] = field(default_factory=list)


def read_agents(text: str) -> tuple[AgentsFile, list[str]]:
    """The file's entries, and the errors in its form. Raises `InvalidAgents` if it is no YAML."""
    if len(text) > LIMIT:
        raise InvalidAgents([f"The file has {len(text):,} characters; the limit is {LIMIT:,}."])
    try:
        # Our loader is the safe one, and refuses repeated names.
        document = yaml.load(text, Loader=_Loader)
    except (yaml.YAMLError, RecursionError) as error:
        raise InvalidAgents([f"This is not YAML: {error}"]) from error
    errors: list[str] = []
    top = Section(document, "", errors, ("credentials", "connections", "agents"))
    found = AgentsFile(
        credentials=[
            _credential(part, name)
            for name, part in top.parts("credentials", ("from_env", "base_url"), ("value",))
        ],
        connections=[
            _connection(part, name) for name, part in top.parts("connections", _CONNECTION)
        ],
        agents=[_agent(part, name) for name, part in top.parts("agents", _AGENT)],
    )
    return found, errors


_CONNECTION = ("transport", "command", "env", "url", "headers", "credential", "enabled")
_AGENT = (
    "title",
    "model",
    "credential",
    "instructions",
    "connections",
    "pool",
    "tools",
    "settings",
    "enabled",
)
_TOOL = ("effect", "approval", "timeout")
_APPROVAL = ("permission", "risk", "deadline", "at_deadline")


class Section:
    """A mapping of the file at ``path``. What is wrong with it goes to ``errors``."""

    def __init__(
        self,
        value: Any,
        path: str,
        errors: list[str],
        known: tuple[str, ...],
        handled: tuple[str, ...] = (),
    ) -> None:
        self.path, self.errors = path, errors
        self.values: dict[str, Any] = {}
        if value is None and not path:
            self.error("", "the file is empty; it needs agents, connections or credentials")
        elif not isinstance(value, dict):
            self.error("", "write names and values here, like {name: value}")
        else:
            self.values = value
        for name in self.values:
            if name not in known and name not in handled:
                self.error(str(name), f"is not known here; {_near(str(name), known)}")

    def at(self, name: str) -> str:
        return f"{self.path}.{name}".strip(".")

    def error(self, name: str, words: str) -> None:
        self.errors.append(f"{self.at(name) or 'file'}: {words}")

    def parts(
        self, name: str, known: tuple[str, ...], handled: tuple[str, ...] = ()
    ) -> Iterator[tuple[str, Section]]:
        """The named sections below ``name``."""
        below = self.values.get(name)
        if below is None:
            return
        if not isinstance(below, dict):
            self.error(name, "write names and values here, like {name: {…}}")
            return
        for key, value in below.items():
            path = f"{self.at(name)}.{key}"
            if not isinstance(key, str):
                self.errors.append(f"{path}: a name is a text; put it in quotes")
                continue
            yield key, Section(value, path, self.errors, known, handled)

    def text(self, name: str, default: str = "", required: bool = False) -> str:
        value = self.values.get(name)
        if value is None:
            if required:
                self.error(name, "is missing")
            return default
        if not isinstance(value, str):
            self.error(name, "must be a text; put it in quotes")
            return default
        return value

    def flag(self, name: str) -> bool | None:
        value = self.values.get(name)
        if value is not None and not isinstance(value, bool):
            self.error(name, "must be true or false")
            return None
        return value

    def choice(self, name: str, allowed: tuple[str, ...], default: str = "") -> str:
        """One of ``allowed``; without a default it must be there."""
        value = self.values.get(name)
        if value is None and default:
            return default
        if value not in allowed:
            said = "is missing" if value is None else f"{value!r} means nothing here"
            self.error(name, f"{said}; use {', '.join(allowed)}")
            return default or allowed[0]
        return str(value)

    def names(self, name: str) -> list[str]:
        value = self.values.get(name, [])
        if not (isinstance(value, list) and all(isinstance(item, str) for item in value)):
            self.error(name, "must be a list of texts, like [shop, search]")
            return []
        return value

    def texts(self, name: str) -> dict[str, str]:
        """Names and texts; a number is taken as it is written."""
        value = self.values.get(name, {})
        if not isinstance(value, dict):
            self.error(name, 'must be names and texts, like {SHOP_DB: "shop.sqlite3"}')
            return {}
        for key, item in value.items():
            if isinstance(item, bool) or not isinstance(item, str | int | float):
                self.error(f"{name}.{key}", "must be a text; put it in quotes")
        return {str(key): str(item) for key, item in value.items()}

    def mapping(self, name: str) -> dict[str, Any]:
        """As JSON would keep it, so that a second import finds it equal."""
        value = self.values.get(name, {})
        if not isinstance(value, dict):
            self.error(name, "must be names and values")
            return {}
        try:
            return dict(json.loads(json.dumps(value, allow_nan=False)))
        except (TypeError, ValueError):
            self.error(name, "holds something that JSON has no form for")
            return {}

    def duration(self, name: str, default: timedelta) -> timedelta:
        value = self.values.get(name)
        if value is None:
            return default
        try:
            found = parse_duration(value)
        except ValueError as error:
            self.error(name, str(error))
            return default
        if found < timedelta(seconds=1):
            self.error(name, "must be at least 1s")
            return default
        return found


def _credential(part: Section, name: str) -> CredentialEntry:
    if "value" in part.values:
        part.error(
            "value",
            "a secret does not belong in this file; give the name of an environment variable "
            "as from_env, or enter it in the admin site",
        )
    return CredentialEntry(name, part.text("from_env", required=True), part.text("base_url"))


def _connection(part: Section, name: str) -> ConnectionEntry:
    transport = part.choice("transport", ("stdio", "http"))
    for field_name, other in (("command", "http"), ("env", "http"), ("url", "stdio")):
        if transport == other and field_name in part.values:
            part.error(field_name, f"has no meaning for a {transport} connection")
    if transport == "stdio" and "headers" in part.values:
        part.error("headers", "has no meaning for a stdio connection")
    values = {
        "transport": transport,
        "command": part.names("command"),
        "env": part.texts("env"),
        "url": part.text("url"),
        "headers": part.texts("headers"),
    }
    return ConnectionEntry(name, values, part.text("credential"), part.flag("enabled"))


def _agent(part: Section, name: str) -> AgentEntry:
    values = {
        "title": part.text("title"),
        "model": part.text("model", required=True),
        "instructions": part.text("instructions"),
        "pool": part.text("pool", "default"),
        "settings": part.mapping("settings"),
    }
    return AgentEntry(
        name=name,
        values=values,
        credential=part.text("credential"),
        connections=part.names("connections"),
        enabled=part.flag("enabled"),
        tools=[_tool(tool, pattern) for pattern, tool in part.parts("tools", _TOOL)],
    )


def _tool(part: Section, pattern: str) -> ToolEntry:
    """What is named without an approval runs without one; what is not named at all needs one."""
    if not PATTERN.fullmatch(pattern):
        part.error("", "a tool's name has letters, digits, _ and -, and * or ? in a pattern")
    values: dict[str, Any] = {
        "effect": part.choice("effect", ("read", "idempotent", "write")),
        "timeout": part.duration("timeout", timedelta(minutes=2)),
        "needs_approval": "approval" in part.values,
        "permission": "tools.approve",
        "risk": "medium",
        "deadline": timedelta(hours=1),
        "at_deadline": "reject",
    }
    if values["needs_approval"]:
        asked = Section(part.values["approval"], part.at("approval"), part.errors, _APPROVAL)
        values |= {
            "permission": asked.text("permission", "tools.approve"),
            "risk": asked.choice("risk", ("low", "medium", "high"), "medium"),
            "deadline": asked.duration("deadline", timedelta(hours=1)),
            "at_deadline": asked.choice("at_deadline", ("reject", "approve"), "reject"),
        }
    return ToolEntry(pattern, values, part.path)


def _near(name: str, known: tuple[str, ...]) -> str:
    near = difflib.get_close_matches(name, known, 1)
    return f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"


class _Loader(yaml.SafeLoader):
    """The safe loader; a name that occurs twice is an error, where YAML would take the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, str | int | float | bool):
                if key in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"“{key}” occurs twice here", key_node.start_mark
                    )
                seen.add(key)
        return super().construct_mapping(node, deep)


def _plain_words_only() -> None:
    """YAML 1.1 reads on, no, 12:30 and 2026-01-31 as something else than they look like.

    Here only true and false, null and decimal numbers are more than the text they are written as.
    """
    tag = "tag:yaml.org,2002:{}".format
    ours = {tag("bool"), tag("int"), tag("float"), tag("timestamp")}
    _Loader.yaml_implicit_resolvers = {
        first: [(name, pattern) for name, pattern in resolvers if name not in ours]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    _Loader.add_implicit_resolver(tag("bool"), re.compile("^(?:true|false)$"), list("tf"))
    _Loader.add_implicit_resolver(
        tag("int"), re.compile("^[-+]?(?:0|[1-9][0-9]*)$"), list("-+0123456789")
    )
    _Loader.add_implicit_resolver(
        tag("float"),
        re.compile(r"^[-+]?(?:0|[1-9][0-9]*)(?:\.[0-9]+(?:[eE][-+]?[0-9]+)?|[eE][-+]?[0-9]+)$"),
        list("-+0123456789"),
    )


_plain_words_only()
