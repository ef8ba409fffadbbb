"""The Flow of an agent as one drawing: its model, its tools by connection, and who is asked first."""

from __future__ import annotations

import fnmatch

from sessions_app.graph.model import GraphNode, GraphPart, node_id
from sessions_app.graph.words import State, duration_words
from sessions_app.models import Agent, Connection, ToolPolicy

EFFECTS = {
    "read": "reads only",
    "idempotent": "writes, safe to repeat",
    "write": "writes, never repeated",
}


def agent_part(agent: Agent) -> GraphPart:
    """``agent`` comes with its tools and connections; nothing is asked of the tool servers."""
    drawing = _Drawing()
    message = drawing.node("message", "Message", "starts a turn")
    model = drawing.node("model", agent.model, "model call", after=message)
    drawing.node("answer", "Answer", "ends the turn", after=model)
    calls = [call for one in agent.connections.all() for call in _connection(drawing, agent, one)]
    if calls:
        join = drawing.node("join", "Results", "joined for the model")
        drawing.edges += [(call, join) for call in calls]
        drawing.edges.append((join, model))
    return GraphPart(
        key="agent",
        turn=0,
        title=f"the Flow of {agent}",
        nodes=tuple(drawing.nodes),
        edges=tuple(drawing.edges),
        links=(),
        step_count=len(drawing.nodes),
        state_class="s-off",
    )


class _Drawing:
    """Nodes and edges while they are gathered."""

    def __init__(self) -> None:
        self.nodes: list[GraphNode] = []
        self.edges: list[tuple[str, str]] = []

    def node(self, key: str, label: str, note: str, after: str = "", state: State = "off") -> str:
        """Adds a box, below ``after`` if that is given. Returns its id."""
        node = GraphNode(node_id(key), (label,), label, note, state, note=note)
        self.nodes.append(node)
        if after:
            self.edges.append((after, node.id))
        return node.id


def _connection(drawing: _Drawing, agent: Agent, connection: Connection) -> list[str]:
    """The connection and below it its tools, each below its gate; returns the tools' ids."""
    name = connection.name
    note = f"{connection.transport} connection" if connection.enabled else "disabled"
    source = drawing.node(f"connection-{name}", name, note, after=node_id("model"))
    if not connection.enabled:
        return []
    calls = []
    for number, (label, policy) in enumerate(_policies(agent, name)):
        above = source
        if policy.needs_approval and policy.enabled:
            asked = "approval" if policy.approve_n == 1 else f"{policy.approve_n} approvals"
            within = f"{asked} within {duration_words(policy.deadline)}"
            gate = f"gate-{name}-{number}"
            above = drawing.node(gate, policy.permission, within, after=source, state="act")
        effect = EFFECTS[policy.effect] if policy.enabled else "switched off"
        calls.append(drawing.node(f"tool-{name}-{number}", label, effect, after=above))
    return calls


def _policies(agent: Agent, connection: str) -> list[tuple[str, ToolPolicy]]:
    """(what it is for, policy): those that name tools of ``connection``, then that of all others."""
    every = f"{connection}__*"
    named = [
        (policy.pattern.removeprefix(f"{connection}__"), policy)
        for policy in agent.policies()
        if policy.pattern not in ("*", every) and _may_match(policy.pattern, connection)
    ]
    return [*named, ("any other tool" if named else "any tool", agent.policy_for(every))]


def _may_match(pattern: str, connection: str) -> bool:
    before, separator, _ = pattern.partition("__")
    return fnmatch.fnmatchcase(connection, before) if separator else "*" in pattern
