"""Twins: pending calls of the same tool by the same agent whose arguments differ little."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from approvals_app.argument_rows import ArgumentRow, argument_rows

CONSIDERED = 200
LONGEST_TWIN = 4096
LONGEST_DIFFERENCE = 200
GROUPS_COMPARED = 8


@dataclass(frozen=True)
class Twin:
    """One line of the list, and its values that are not the same in every twin."""

    row: Any
    differences: list[tuple[str, ArgumentRow]] = field(default_factory=list)


@dataclass(frozen=True)
class Group:
    """Twins in the order of the list, or one line alone. ``differs``: the paths that differ."""

    twins: list[Twin]
    differs: list[str]

    @property
    def alone(self) -> bool:
        return len(self.twins) == 1


class _Cluster:
    """Twins as they are found. Every one has the paths of the first."""

    def __init__(self, row: Any, values: dict[str, ArgumentRow]) -> None:
        self.rows = [(row, values)]
        self.first = values
        self.differs: set[str] = set()

    def takes(self, row: Any, values: dict[str, ArgumentRow]) -> bool:
        differs = self.differs | {
            path for path, value in values.items() if value != self.first[path]
        }
        if len(differs) > _most(len(values)) or any(_long(values[path]) for path in differs):
            return False
        self.differs = differs
        self.rows.append((row, values))
        return True

    def group(self) -> Group:
        differs = [path for path in self.first if path in self.differs]
        twins = [Twin(row, [(p, values[p]) for p in differs]) for row, values in self.rows]
        return Group(twins, differs)


def groups_of(rows: Iterable[tuple[Any, Any, str]]) -> list[Group]:
    """``rows`` of (row, what must be equal, arguments as JSON text) as groups, each where its
    first row stood. Only the first `CONSIDERED` are compared, and each with a few others only."""
    found: list[_Cluster] = []
    buckets: dict[Any, list[_Cluster]] = {}
    for place, (row, same, text) in enumerate(rows):
        comparable = place < CONSIDERED and len(text) < LONGEST_TWIN
        values = argument_paths(text) if comparable else {}
        bucket = buckets.setdefault((same, *values), []) if comparable else []
        if any(cluster.takes(row, values) for cluster in bucket):
            continue
        cluster = _Cluster(row, values)
        found.append(cluster)
        if len(bucket) < GROUPS_COMPARED:
            bucket.append(cluster)
    return [cluster.group() for cluster in found]


def argument_paths(text: str) -> dict[str, ArgumentRow]:
    """Each value of JSON arguments by its path, like ``lines.2.amount``, in their order."""
    paths: dict[str, ArgumentRow] = {}
    above: list[str] = []
    for row in argument_rows(text):
        above = [*above[: row.depth], row.name]
        # A name may hold a dot itself; the quotes keep two paths from becoming one.
        paths[".".join(name if "." not in name else f"“{name}”" for name in above)] = row
    return paths


def _most(values: int) -> int:
    """How many of so many values may differ: most of a few, a few of many."""
    return max(1, min(4, -(-values * 2 // 3)))


def _long(value: ArgumentRow) -> bool:
    return len(value.text) > LONGEST_DIFFERENCE
