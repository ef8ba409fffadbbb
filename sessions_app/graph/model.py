"""Steps to the parts of a session's graph: nodes, edges and words. Pure, linear in its input.

The unit is the turn. Steps of turn 0, which lie before the first turn, stand at the head of the
first part. A turn longer than PART_NODES is cut at a model Step, counted from its start, so that a
growing turn never moves an earlier cut.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from sessions_app.graph.text import shorten
from sessions_app.graph.words import (
    State,
    folded_sublabel,
    label_of,
    note_of,
    standing_of,
    state_of,
    sublabel_of,
)

PART_NODES = 150
PART_NODES_AT_MOST = 2 * PART_NODES
FOLD_BEYOND = 6
LINKS_SHOWN = 8
INDENT_AT_MOST = 8

FoldKey = tuple[object, ...]

# The line a turn follows; everything else hangs under the Step that asked for it.
SPINE = frozenset({"AwaitMessage", "AwaitSpend", "CompactContext", "RunModel", "ResumeTurn"})
# The first that a part contains is what its folded line shows.
STATES_BY_WEIGHT: tuple[State, ...] = ("act", "odd", "run", "bad", "ok", "off")


@dataclass(frozen=True)
class GraphStep:
    """What the graph needs to know of one Step, in the order in which Steps came about."""

    step_id: str
    type: str
    status: str
    turn: int
    causes: tuple[str, ...]
    tool: str = ""
    outcome: str = ""
    attempt: int = 1
    detail: str = ""
    started_at: datetime | None = None
    ended_at: datetime | None = None


@dataclass(frozen=True)
class GraphNode:
    """One box. `label` and `note` are stable; `sublabel` and `state` need no new layout."""

    id: str
    step_ids: tuple[str, ...]
    label: str
    sublabel: str
    state: State
    type: str = ""
    note: str = ""
    standing: str = ""


@dataclass(frozen=True)
class GraphPart:
    """One drawing. `edges` are pairs of its own node ids; `links` say in words what leaves it."""

    key: str
    turn: int
    title: str
    nodes: tuple[GraphNode, ...]
    edges: tuple[tuple[str, str], ...]
    links: tuple[str, ...]
    step_count: int
    state_class: str


def build_parts(steps: Sequence[GraphStep]) -> list[GraphPart]:
    """The parts in the order of turns. Of two Steps with one id, the later row counts."""
    rows = list({step.step_id: step for step in steps}.values())
    groups = _fold(rows)
    chunks = _cut(_by_turn(groups))
    node_of = {step.step_id: node_id(group[0].step_id) for group in groups for step in group}
    chunk_of = {
        node_id(group[0].step_id): number
        for number, chunk in enumerate(chunks)
        for group in chunk.groups
    }
    wires = [_Wires() for _ in chunks]
    for step in rows:
        for cause in step.causes:
            _wire(step, cause, node_of, chunk_of, wires)
    return [_part(chunk, wired) for chunk, wired in zip(chunks, wires, strict=True)]


def as_list(part: GraphPart) -> list[tuple[int, GraphNode]]:
    """The same nodes as (depth, node) rows: what hangs under a Step follows it, one level in."""
    by_id = {node.id: node for node in part.nodes}
    children: defaultdict[str, list[str]] = defaultdict(list)
    hanging: set[str] = set()
    for cause, effect in part.edges:
        if effect in hanging or by_id[effect].type in SPINE:
            continue
        hanging.add(effect)
        children[cause].append(effect)

    rows: list[tuple[int, GraphNode]] = []
    seen: set[str] = set()
    roots = [node.id for node in part.nodes if node.id not in hanging]
    # A ring of causes has no root, so whatever is left starts a tree of its own.
    for root in (*roots, *by_id):
        pending = [(root, 0)]
        while pending:
            current, depth = pending.pop()
            if current in seen:
                continue
            seen.add(current)
            rows.append((min(depth, INDENT_AT_MOST), by_id[current]))
            pending.extend((child, depth + 1) for child in reversed(children[current]))
    return rows


def node_id(step_id: str) -> str:
    """An id safe in DOT, XML, CSS and a URL fragment; different for different step ids."""
    safe = re.sub(r"[^A-Za-z0-9-]", lambda match: f"_{ord(match[0]):x}_", step_id[:200])
    if len(step_id) <= 200:
        return f"step-{safe}"
    digest = hashlib.sha256(step_id.encode("utf-8", "surrogatepass")).hexdigest()
    return f"step-{safe[:60]}__{digest[:16]}"


@dataclass(frozen=True)
class _Chunk:
    turn: int
    number: int
    of: int
    groups: list[list[GraphStep]]


class _Wires:
    """Edges and links of a part while they are gathered; dicts for order without repeats."""

    def __init__(self) -> None:
        self.edges: dict[tuple[str, str], None] = {}
        self.links: dict[str, None] = {}


def _fold(steps: list[GraphStep]) -> list[list[GraphStep]]:
    """Each Step alone, or with its equals where more than FOLD_BEYOND siblings are alike."""
    only_child = _only_children(steps)
    alike: defaultdict[FoldKey, list[GraphStep]] = defaultdict(list)
    for step in steps:
        alike[_fold_key(step, only_child)].append(step)
    groups: list[list[GraphStep]] = []
    for step in steps:
        members = alike[_fold_key(step, only_child)]
        if len(members) <= FOLD_BEYOND:
            groups.append([step])
        elif members[0] is step:
            groups.append(members)
    return groups


def _fold_key(step: GraphStep, only_child: dict[str, str | None]) -> FoldKey:
    child = only_child.get(step.step_id, "")
    settled = step.status != "waiting" and state_of(step) in ("ok", "off")
    if not settled or not step.causes or child is None:
        return (step.step_id,)
    causes = frozenset(step.causes)
    return (step.turn, step.type, step.tool, step.status, step.outcome, causes, child)


def _only_children(steps: list[GraphStep]) -> dict[str, str | None]:
    """For each cause its one effect, or None when it has several."""
    only: dict[str, str | None] = {}
    for step in steps:
        for cause in set(step.causes):
            only[cause] = None if cause in only else step.step_id
    return only


def _by_turn(groups: Iterable[list[GraphStep]]) -> dict[int, list[list[GraphStep]]]:
    turns: defaultdict[int, list[list[GraphStep]]] = defaultdict(list)
    for group in groups:
        turns[max(group[0].turn, 0)].append(group)
    before = turns.pop(0, [])
    if before:
        first = min(turns, default=1)
        turns[first] = before + turns[first]
    return {turn: turns[turn] for turn in sorted(turns)}


def _cut(turns: dict[int, list[list[GraphStep]]]) -> list[_Chunk]:
    chunks: list[_Chunk] = []
    for turn, groups in turns.items():
        pieces: list[list[list[GraphStep]]] = [[]]
        for group in groups:
            size = len(pieces[-1])
            at_model = group[0].type == "RunModel" and size >= PART_NODES
            if at_model or size >= PART_NODES_AT_MOST:
                pieces.append([])
            pieces[-1].append(group)
        chunks += [
            _Chunk(turn, number, len(pieces), piece) for number, piece in enumerate(pieces, start=1)
        ]
    return chunks


def _wire(
    step: GraphStep,
    cause: str,
    node_of: dict[str, str],
    chunk_of: dict[str, int],
    wires: list[_Wires],
) -> None:
    effect = node_of[step.step_id]
    here = chunk_of[effect]
    origin = node_of.get(cause)
    if origin == effect:
        return
    if origin is not None and chunk_of[origin] == here:
        wires[here].edges[origin, effect] = None
        return
    wires[here].links[f"continues from {shorten(cause, 60)}"] = None
    if origin is not None:
        wires[chunk_of[origin]].links[f"continues with {shorten(step.step_id, 60)}"] = None


def _part(chunk: _Chunk, wired: _Wires) -> GraphPart:
    nodes = tuple(_node(group) for group in chunk.groups)
    states = {node.state for node in nodes}
    state = next(state for state in STATES_BY_WEIGHT if state in states)
    return GraphPart(
        key=f"turn-{chunk.turn}" + (f"-{chunk.number}" if chunk.number > 1 else ""),
        turn=chunk.turn,
        title=f"Turn {chunk.turn}" + (f", part {chunk.number}" if chunk.of > 1 else ""),
        nodes=nodes,
        edges=tuple(wired.edges),
        links=_first_links(list(wired.links)),
        step_count=sum(len(group) for group in chunk.groups),
        state_class=f"s-{state}",
    )


def _first_links(links: list[str]) -> tuple[str, ...]:
    if len(links) <= LINKS_SHOWN:
        return tuple(links)
    return (*links[:LINKS_SHOWN], f"and {len(links) - LINKS_SHOWN} more")


def _node(group: list[GraphStep]) -> GraphNode:
    first = group[0]
    folded = len(group) > 1
    return GraphNode(
        id=node_id(first.step_id),
        step_ids=tuple(step.step_id for step in group),
        label=f"{label_of(first)} ×{len(group)}" if folded else label_of(first),
        sublabel=folded_sublabel(group) if folded else sublabel_of(first),
        state=state_of(first),
        type=first.type,
        note=f"{len(group)} steps" if folded else note_of(first),
        standing=standing_of(first),
    )
