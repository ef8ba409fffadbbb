"""Agents as YAML, read and judged: every error names its place in the file. Stores nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import yaml

from sessions_app.agents_section import Section
from sessions_app.policies_file import TIMES, TOOL, ToolEntry, read_times, read_tool

LIMIT = 4 * 1024 * 1024
#: Names and values in all, one that is repeated by an alias (*name) counted each time.
MOST_VALUES = 200_000


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
    tools: list[ToolEntry]


@dataclass(frozen=True)
class BudgetEntry:
    """A budget of the agent that the file names; ``kind`` is how the file calls it."""

    kind: str
    scope: str
    period: str
    amount: Decimal
    allow_unknown: bool


@dataclass(frozen=True)
class AgentEntry:
    """``budgets`` is None where the file says nothing of spend, and what is there stays."""

    name: str
    values: dict[str, Any]
    credential: str
    connections: list[str]
    enabled: bool | None
    tools: list[ToolEntry]
    budgets: list[BudgetEntry] | None


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


_CONNECTION = ("transport", "command", "env", "url", "headers", "credential", "enabled", "tools")
_AGENT = (
    "title",
    "model",
    "credential",
    "instructions",
    "connections",
    "delegates",
    "pool",
    "model_calls",
    "limits",
    "tools",
    "settings",
    "spend",
    "enabled",
)
#: What a turn may do, below `limits`.
TURN_LIMITS = ("model_calls_per_turn", "parallel_calls")
#: (scope, period) of each of an agent's budgets.
BUDGETS = {
    "session": ("session", "total"),
    "day": ("agent", "day"),
    "month": ("agent", "month"),
    "total": ("agent", "total"),
}


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
    tools = [read_tool(tool, pattern, f"{name}__") for pattern, tool in part.parts("tools", TOOL)]
    return ConnectionEntry(name, values, part.text("credential"), part.flag("enabled"), tools)


def _agent(part: Section, name: str) -> AgentEntry:
    calls = part.part("model_calls", ("timeout", *TIMES))
    limits = part.part("limits", TURN_LIMITS)
    values = {
        "title": part.text("title"),
        "model": part.text("model", required=True),
        "instructions": part.text("instructions"),
        "delegates": part.names("delegates"),
        "pool": part.text("pool", "default"),
        "settings": part.mapping("settings"),
        "model_timeout": calls.duration_or_none("timeout"),
        **read_times(calls, "model_"),
        **{name: limits.number_or_none(name) for name in TURN_LIMITS},
    }
    return AgentEntry(
        name=name,
        values=values,
        credential=part.text("credential"),
        connections=part.names("connections"),
        enabled=part.flag("enabled"),
        tools=[read_tool(tool, pattern) for pattern, tool in part.parts("tools", TOOL)],
        budgets=_budgets(part) if "spend" in part.values else None,
    )


def _budgets(agent: Section) -> list[BudgetEntry]:
    part = agent.part("spend", (*BUDGETS, "allow_unknown"))
    allow_unknown = part.flag("allow_unknown") or False
    amounts = ((kind, part.amount(kind)) for kind in BUDGETS)
    return [
        BudgetEntry(kind, *BUDGETS[kind], amount, allow_unknown)
        for kind, amount in amounts
        if amount is not None
    ]


class _Loader(yaml.SafeLoader):
    """The safe loader; a name that occurs twice is an error, where YAML would take the last."""

    def get_single_node(self) -> yaml.Node | None:
        node: yaml.Node | None = super().get_single_node()
        if node is not None:
            self._size(node, {})
        return node

    def _size(self, node: yaml.Node, known: dict[int, int]) -> int:
        """How many values there are at ``node``: few lines of aliases of aliases may stand for more
        than any memory holds, once they are written out.
        """
        if isinstance(node, yaml.ScalarNode):
            return 1
        if id(node) not in known:
            # What is met again inside itself is without end.
            known[id(node)] = MOST_VALUES + 1
            parts = [each for pair in node.value for each in _both(pair)]
            known[id(node)] = 1 + sum(self._size(part, known) for part in parts)
        if known[id(node)] > MOST_VALUES:
            raise yaml.composer.ComposerError(
                None, None, f"it stands for more than {MOST_VALUES:,} values", node.start_mark
            )
        return known[id(node)]

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


def _both(item: Any) -> tuple[yaml.Node, ...]:
    """An item of a mapping is a pair of nodes, one of a list is a node."""
    return item if isinstance(item, tuple) else (item,)


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
