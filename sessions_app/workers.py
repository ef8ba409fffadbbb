"""The pools of this installation: who serves them, what they have free, and what waits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from asgiref.sync import async_to_sync
from django.db.models import Q
from django.utils import timezone

from dexweb.engine.backlog import PoolBacklog
from dexweb.engine.client import SessionEngine
from dexweb.engine.errors import EngineUnavailable
from sessions_app.models import Agent, Step, ToolCall, ToolPolicy, WorkerPresence

POOLS_AT_MOST = 20
WORKERS_AT_MOST = 200
AGENTS_AT_MOST = 1000
#: Steps that wait are looked at up to here; the engine's own count is not bounded.
STEPS_AT_MOST = 200
ENGINE_LIMIT = 2.0


@dataclass(frozen=True)
class Slots:
    """Of one kind, over all workers of a pool that are there."""

    used: int
    total: int

    @property
    def free(self) -> int:
        return max(0, self.total - self.used)


@dataclass
class Pool:
    """`backlog` is None while the engine does not answer; `oldest` is a Step that no worker has taken."""

    name: str
    agents: list[str] = field(default_factory=list)
    tools: list[str] = field(default_factory=list)
    workers: list[WorkerPresence] = field(default_factory=list)
    backlog: PoolBacklog | None = None
    oldest: Step | None = None

    @property
    def there(self) -> list[WorkerPresence]:
        """Those that are there and stay."""
        return [row for row in self.workers if row.fresh and not row.stopping]

    @property
    def serving(self) -> list[WorkerPresence]:
        """Those of them that the engine gives something new."""
        if self.backlog is None:
            return self.there
        given_to = self.backlog.flow.given_to
        return [row for row in self.there if row.deployment in given_to]

    @property
    def given_to(self) -> str:
        """The version of workers that gets the pool's sessions; "" for those without one."""
        return self.backlog.flow.given_to[0] if self.backlog else ""

    @property
    def left_out(self) -> WorkerPresence | None:
        """The newest worker that is there while the engine gives sessions to another version only."""
        return max(self.there, key=lambda row: row.started_at, default=None)

    @property
    def needed(self) -> bool:
        """Whether an enabled agent or the policy of a tool names it."""
        return bool(self.agents or self.tools)

    @property
    def missing(self) -> bool:
        """Somebody counts on it, or is there in vain, and nobody serves it."""
        return not self.serving and bool(self.needed or self.oldest or self.there)

    @property
    def model_slots(self) -> Slots:
        rows = self.serving
        return Slots(sum(r.model_used for r in rows), sum(r.model_slots for r in rows))

    @property
    def tool_slots(self) -> Slots:
        rows = self.serving
        return Slots(sum(r.tool_used for r in rows), sum(r.tool_slots for r in rows))


@dataclass(frozen=True)
class Picture:
    """All pools, those that nobody serves first; `left_out` more are not looked at."""

    pools: list[Pool]
    left_out: int
    engine_away: bool
    at: datetime

    @property
    def missing(self) -> list[Pool]:
        return [pool for pool in self.pools if pool.missing]


def picture() -> Picture:
    """In a fixed number of queries, and at most two seconds of the engine's time."""
    found: dict[str, Pool] = {}

    def pool(name: str) -> Pool:
        return found.setdefault(name, Pool(name))

    for agent, name in _agents():
        pool(name).agents.append(agent)
    for pattern, name in _tools():
        pool(name).tools.append(pattern)
    for row in WorkerPresence.objects.remembered()[:WORKERS_AT_MOST]:
        pool(row.pool).workers.append(row)
    for name, step in _oldest().items():
        pool(name).oldest = step
    pools = sorted(found.values(), key=lambda one: (not one.missing, one.name))
    shown = pools[:POOLS_AT_MOST]
    away = not _ask_engine(shown)
    # What the engine says of versions may show more of them to be served by nobody.
    shown.sort(key=lambda one: not one.missing)
    return Picture(shown, len(pools) - len(shown), away, timezone.now())


def _agents() -> Iterable[tuple[str, str]]:
    rows = Agent.objects.enabled().order_by("name")
    return rows.values_list("name", "pool")[:AGENTS_AT_MOST]


def _tools() -> Iterable[tuple[str, str]]:
    used = Q(agent__enabled=True) | Q(connection__enabled=True)
    rows = ToolPolicy.objects.filter(used).exclude(pool="").order_by("pattern")
    return rows.values_list("pattern", "pool").distinct()[:AGENTS_AT_MOST]


def _oldest() -> dict[str, Step]:
    """For each pool the Step that has waited longest for a worker."""
    steps = list(Step.objects.waiting_for_worker()[:STEPS_AT_MOST])
    ids = {step.call_id for step in steps if step.call_id}
    calls = ToolCall.objects.filter(call_id__in=ids, session__in={s.session_id for s in steps})
    pools: defaultdict[tuple[str, str], str] = defaultdict(str)
    for session, call, policy in calls.values_list("session", "call_id", "policy"):
        pools[session, call] = policy.get("pool", "")
    oldest: dict[str, Step] = {}
    for step in steps:
        name = pools[step.session_id, step.call_id] or step.session.agent.pool
        oldest.setdefault(name, step)
    return oldest


def _ask_engine(pools: list[Pool]) -> bool:
    """Fills in what the engine counts; False when it does not answer."""
    try:
        found = async_to_sync(SessionEngine(timeout=ENGINE_LIMIT).backlogs)(p.name for p in pools)
    except EngineUnavailable:
        return False
    for pool in pools:
        pool.backlog = found[pool.name]
    return True
