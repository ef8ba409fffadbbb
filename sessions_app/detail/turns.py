"""The graph of a session, turn by turn: the newest drawn, earlier ones as one line each."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from django.db.models import Count, Max, Q
from django.db.models.functions import Left

from sessions_app.graph.model import STATES_BY_WEIGHT, GraphPart, GraphStep, build_parts
from sessions_app.graph.service import PartView, part_view
from sessions_app.graph.words import STATE_BY_OUTCOME, STATE_BY_STATUS, WAITS, State, state_of
from sessions_app.models import Message, Session, Step

FOLDED_SHOWN = 20
# Before somebody asks for more: the drawing is what people came for.
FOLDED_AT_FIRST = 4
STEPS_READ = 6_000

LEGEND: dict[State, str] = {
    "act": "waits for a person",
    "run": "running",
    "ok": "done",
    "bad": "failed",
    "odd": "outcome unknown",
    "off": "did not run",
}
# The server's rule for a node's state, for the page to apply as news comes in.
STATE_RULES = json.dumps(
    {
        "outcome": STATE_BY_OUTCOME,
        "status": STATE_BY_STATUS,
        "waiting": {type: state for type, (state, _) in WAITS.items()},
    }
)


@dataclass(frozen=True)
class FoldedPart:
    """One line that stands for a part, until it is opened by its key."""

    key: str
    title: str
    said: str
    steps: int
    state: State


@dataclass(frozen=True)
class GraphStrip:
    """`before` and `after` are folded parts around the open one; `earlier` is a turn or None."""

    before: list[FoldedPart] = field(default_factory=list)
    open: PartView | None = None
    after: list[FoldedPart] = field(default_factory=list)
    earlier: int | None = None
    legend: list[tuple[State, str, int]] = field(default_factory=list)


def newest(session: Session) -> GraphStrip:
    """The newest part drawn, what came before it folded."""
    last = session.steps.aggregate(last=Max("turn"))["last"]
    if last is None:
        return GraphStrip()
    parts = _parts_of(session, last)
    folded, earlier = folded_before(session, last, FOLDED_AT_FIRST)
    return _strip(parts, parts[-1].key, folded, earlier)


def one(session: Session, key: str) -> GraphStrip | None:
    """The part with this key drawn, the other parts of its turn folded; None if there is none."""
    match = re.fullmatch(r"turn-(\d{1,9})(-\d{1,6})?", key)
    if match is None:
        return None
    parts = _parts_of(session, int(match[1]))
    if not any(part.key == key for part in parts):
        return None
    return _strip(parts, key, [], None)


def folded_before(
    session: Session, turn: int, at_most: int = FOLDED_SHOWN
) -> tuple[list[FoldedPart], int | None]:
    """The turns before ``turn`` as lines, oldest first, and the first of them if there are more."""
    turns = list(
        session.steps.filter(turn__lt=turn, turn__gt=0)
        .values_list("turn", flat=True)
        .distinct()
        .order_by("-turn")[: at_most + 1]
    )
    shown = turns[:at_most]
    earlier = shown[-1] if len(turns) > at_most else None
    said = _said(session, shown)
    return [
        FoldedPart(f"turn-{number}", f"Turn {number}", said.get(number, ""), count, state)
        for number, (count, state) in sorted(_standings(session, shown).items())
    ], earlier


def _strip(
    parts: list[GraphPart], key: str, before: list[FoldedPart], earlier: int | None
) -> GraphStrip:
    at = next(index for index, part in enumerate(parts) if part.key == key)
    nodes = [node for part in parts for node in part.nodes]
    counts = Counter((node.state, node.standing or LEGEND[node.state]) for node in nodes)
    return GraphStrip(
        before=before + [_folded(part) for part in parts[:at]],
        open=part_view(parts[at]),
        after=[_folded(part) for part in parts[at + 1 :]],
        earlier=earlier,
        legend=[
            (state, words, count)
            for shown in LEGEND
            for (state, words), count in counts.items()
            if state == shown
        ],
    )


def _folded(part: GraphPart) -> FoldedPart:
    state: State = part.state_class.removeprefix("s-")  # type: ignore[assignment]
    return FoldedPart(part.key, part.title, "", part.step_count, state)


def _parts_of(session: Session, turn: int) -> list[GraphPart]:
    """The parts of one turn. The next turn is read too, since a part says what it goes on with."""
    wanted = Q(turn=turn) | Q(turn=turn + 1)
    if not session.steps.filter(turn__gt=0, turn__lt=max(turn, 1)).exists():
        wanted |= Q(turn=0)
    rows = session.steps.filter(wanted).order_by("position")[:STEPS_READ]
    parts = build_parts([graph_step(row) for row in _light(rows)])
    return [part for part in parts if part.turn == max(turn, 1)] or parts


def _light(rows: Iterable[Step]) -> Iterable[Step]:
    return rows.only(  # type: ignore[attr-defined]
        *(
            "session_id",
            "step_id",
            "type",
            "status",
            "turn",
            "causes",
            "tool",
            "outcome",
            "attempt",
            "position",
        ),
        *("detail", "started_at", "ended_at"),
    )


def graph_step(row: Step) -> GraphStep:
    return GraphStep(
        step_id=row.step_id,
        type=row.type,
        status=row.status,
        turn=row.turn,
        causes=tuple(row.causes),
        tool=row.tool,
        outcome=row.outcome,
        attempt=row.attempt,
        detail=row.detail,
        started_at=row.started_at,
        ended_at=row.ended_at,
    )


def _standings(session: Session, turns: list[int]) -> dict[int, tuple[int, State]]:
    """For each turn how many Steps it has, and the state among theirs that matters most."""
    counts: Counter[int] = Counter()
    states: defaultdict[int, set[State]] = defaultdict(set)
    groups = (
        session.steps.filter(turn__in=turns)
        .order_by()
        .values("turn", "type", "status", "outcome")
        .annotate(steps=Count("id"))
    )
    for group in groups:
        step = GraphStep("", group["type"], group["status"], 0, (), outcome=group["outcome"])
        counts[group["turn"]] += group["steps"]
        states[group["turn"]].add(state_of(step))
    return {
        turn: (count, next(state for state in STATES_BY_WEIGHT if state in states[turn]))
        for turn, count in counts.items()
    }


def _said(session: Session, turns: list[int]) -> dict[int, str]:
    """How the first message of each turn begins."""
    rows = (
        Message.objects.filter(session=session, turn__in=turns)
        .order_by("-id")
        .values_list("turn", Left("text", 120))
    )
    return dict(rows)
