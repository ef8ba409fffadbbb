"""A few approvals decided together: each shown in full before, each decided on its own.

The page and the API both call `decide_all`, which calls `decisions.decide` for each.
"""

import re
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from approvals_app import decisions
from approvals_app.argument_rows import FOLD, ArgumentRow
from approvals_app.deception import suspicious
from approvals_app.forms import IncompleteDecision
from approvals_app.inbox import Viewer, mark
from approvals_app.models import Decision, Interrupt
from approvals_app.panel import EFFECTS
from approvals_app.panel_state import VotesShown, votes_shown
from approvals_app.rules import SEE, standing_to_decide
from approvals_app.twins import argument_paths, groups_of
from dexweb.engine.errors import (
    DexwebError,
    EngineUnavailable,
    NoWorker,
    ReasonRequired,
)
from sessions_app.text import keepable

MOST = 50
#: A longer value is folded on a page of its own, so nobody would have read it in full here.
LONGEST_SHOWN = FOLD
ITEM = re.compile(r"\A([\w-]{1,64}):(\d{1,9}):([0-9a-f]{64})\Z")


@dataclass
class OpenAlone(DexwebError):
    """``because`` says what a person has to look at more closely."""

    because: str = ""
    code = "open_alone"
    status = 409
    title = "Open this one by itself"

    @property
    def message(self) -> str:
        return f"It cannot be decided together with others: {self.because}."


@dataclass(frozen=True)
class Named:
    """An approval exactly as it was shown."""

    id: str
    revision: int
    args_hash: str


@dataclass(frozen=True)
class Asked:
    """One verdict and one reason for some approvals. A repeated ``batch_id`` repeats, not adds."""

    batch_id: str
    verdict: str
    items: tuple[Named, ...]
    reason: str = ""

    @classmethod
    def read(cls, form: Any) -> "Asked":
        """A page's form; what cannot be read is left empty, which `decide_all` refuses."""
        found = (ITEM.match(text) for text in form.getlist("item")[: MOST + 1])
        items = tuple(
            Named(match[1], int(match[2]), match[3]) for match in found if match is not None
        )
        return cls(
            _uuid(form.get("batch_id", "")), form.get("verdict", ""), items, form.get("reason", "")
        )


@dataclass(frozen=True)
class Result:
    """What became of one. ``outcome``: delivered, kept, refused or not_sent.

    ``votes``: how a delivered one stands where several must say it; it may still be pending.
    """

    id: str
    outcome: str
    interrupt: Interrupt | None = None
    error: DexwebError | None = None
    votes: VotesShown | None = None

    @property
    def ok(self) -> bool:
        return self.outcome in ("delivered", "kept")

    @property
    def waits_for_more(self) -> bool:
        """Whether the vote was counted and others must still say the same."""
        pending = self.interrupt is not None and self.interrupt.state == Interrupt.State.PENDING
        return pending and self.votes is not None


@dataclass(frozen=True)
class Item:
    """One approval in full, as the review page shows it."""

    interrupt: Interrupt
    arguments: list[tuple[str, ArgumentRow]]
    votes: VotesShown
    differs: frozenset[str] = frozenset()
    effect_words: str = ""

    @property
    def wants_reason(self) -> bool:
        return bool(self.interrupt.policy.get("reason_on_approve"))

    @property
    def name(self) -> str:
        """What is decided on, for the form."""
        return f"{self.interrupt.pk}:{self.interrupt.revision}:{self.interrupt.args_hash}"


@dataclass(frozen=True)
class Excluded:
    """One that is not decided here, and why in words."""

    id: str
    because: str
    interrupt: Interrupt | None = None


def chosen(ids: Iterable[str]) -> list[str]:
    """Each once, in their order."""
    return list(dict.fromkeys(text[:64] for text in ids if text and "\0" not in text))


def review(user: User, ids: list[str]) -> tuple[list[Item], list[Excluded]]:
    """What of ``ids`` can be decided together by ``user``, twins side by side; and what not."""
    known = _find(user, ids[:MOST])
    excluded = [Excluded(pk, f"more than {MOST} at once") for pk in ids[MOST:]]
    rows = []
    for pk in ids[:MOST]:
        because = kept_out(user, known.get(pk))
        if because:
            excluded.append(Excluded(pk, because, known.get(pk)))
        else:
            rows.append(known[pk])
    mark(rows, Viewer.of(user))
    groups = groups_of((row, (row.tool, row.session.agent_id), row.args) for row in rows)
    items = [
        Item(
            twin.row,
            list(argument_paths(twin.row.args).items()),
            votes_shown(twin.row, user),
            frozenset(group.differs),
            EFFECTS.get(twin.row.effect, twin.row.effect),
        )
        for group in groups
        for twin in group.twins
    ]
    return items, excluded


def kept_out(user: User, row: Interrupt | None) -> str:
    """Why ``user`` cannot decide it among others, in words; "" when they can."""
    if row is None:
        return "there is no such approval"
    if row.state != Interrupt.State.PENDING:
        by = f" by {row.decided_by_name}" if row.decided_by_name else ""
        return f"it was {row.state}{by} meanwhile"
    if row.is_question:
        return "it is a question, to be answered by itself"
    if row.deadline <= timezone.now():
        return "its deadline has passed"
    standing = standing_to_decide(user, row)
    if not standing.holds:
        return f"it needs the permission {row.permission}, which you do not hold"
    if standing.barred_because:
        return f"somebody else must decide it: {standing.barred_because}"
    if votes_shown(row, user).mine:
        return "you voted on it already, and a person counts once"
    if row.hold_until and row.hold_until > timezone.now() and row.hold_by_id != user.pk:
        return f"{row.hold_by_name} is looking at it"
    return look_closer(row)


def look_closer(row: Interrupt) -> str:
    """What about it asks for a closer look than a batch gives, in words; "" when nothing does."""
    values = argument_paths(row.args)
    if suspicious(row.tool) or suspicious(row.why) or any(r.odd for r in values.values()):
        return "it holds hidden or look-alike characters"
    if len(row.why) > 10 * LONGEST_SHOWN or any(_long(r) for r in values.values()):
        return "it holds a long value, which is to be unfolded and read"
    return ""


def _long(value: ArgumentRow) -> bool:
    return len(value.text) > LONGEST_SHOWN or len(value.name) > LONGEST_SHOWN


def decide_all(user: User, asked: Asked) -> list[Result]:
    """Decide each of ``asked.items`` as ``user``; one that is refused does not stop the others.

    Raises IncompleteDecision and ReasonRequired, and has decided nothing then.
    """
    _check(asked)
    known = _find(user, [item.id for item in asked.items])
    if not asked.reason.strip() and any(_wants(known.get(i.id), asked) for i in asked.items):
        raise ReasonRequired()
    away = _Away()
    results = [_decide(user, item, known.get(item.id), asked, away) for item in asked.items]
    return _as_they_stand(user, results)


def _as_they_stand(user: User, results: list[Result]) -> list[Result]:
    """The results with how each stands by now: one vote of several may not have ended it."""
    several = [r.id for r in results if r.outcome == "delivered" and _several(r.interrupt)]
    now = _find(user, several)
    return [
        replace(result, interrupt=now[result.id], votes=votes_shown(now[result.id], user))
        if result.id in now
        else result
        for result in results
    ]


def _several(row: Interrupt | None) -> bool:
    """Whether more than one person must say it."""
    return row is not None and max(row.policy.get(n, 1) for n in ("approve_n", "deny_m")) > 1


@dataclass
class _Away:
    """What did not answer: the rest of the batch does not wait for it one by one."""

    error: DexwebError | None = None
    pools: set[str] = field(default_factory=set)

    def learn(self, error: DexwebError) -> None:
        if isinstance(error, NoWorker):
            self.pools.add(error.pool)
        else:
            self.error = error

    def from_(self, pool: str) -> DexwebError | None:
        return self.error or (NoWorker(pool=pool) if pool in self.pools else None)


def _decide(user: User, item: Named, row: Interrupt | None, asked: Asked, away: _Away) -> Result:
    missing = away.from_(row.session.agent.pool) if row else None
    if missing is not None:
        return Result(item.id, "not_sent", row, missing)
    try:
        if row is not None and (closer := look_closer(row)):
            raise OpenAlone(because=closer)
        decisions.decide(
            user,
            item.id,
            verdict=asked.verdict,
            revision=item.revision,
            args_hash=item.args_hash,
            reason=asked.reason,
            request_id=_request_id(user, item, asked),
        )
    except (EngineUnavailable, NoWorker) as error:
        away.learn(error)
        return Result(item.id, "kept" if error.kept else "not_sent", row, error)
    except DexwebError as error:
        return Result(item.id, "kept" if error.kept else "refused", row, error)
    return Result(item.id, "delivered", row)


def _request_id(user: User, item: Named, asked: Asked) -> str:
    """The same for a repeated batch, so that each is decided once."""
    return str(uuid.uuid5(uuid.UUID(asked.batch_id), f"{user.pk}:{item.id}:{item.revision}"))


def _check(asked: Asked) -> None:
    faults = []
    if asked.verdict not in Decision.Verdict.values:
        faults.append("Say whether to approve or to reject.")
    if not asked.batch_id:
        faults.append("The batch has no id.")
    if not asked.items:
        faults.append("Choose at least one approval.")
    if len(asked.items) > MOST:
        faults.append(f"At most {MOST} can be decided together.")
    if len({item.id for item in asked.items}) != len(asked.items):
        faults.append("An approval stands in it twice.")
    if faults:
        raise IncompleteDecision(errors=faults)


def _wants(row: Interrupt | None, asked: Asked) -> bool:
    if row is None:
        return False
    if asked.verdict == Decision.Verdict.REJECT:
        return bool(row.policy.get("reason_on_reject", True))
    return bool(row.policy.get("reason_on_approve"))


def _find(user: User, ids: Iterable[str]) -> Mapping[str, Interrupt]:
    if not user.is_active or not user.has_perm(SEE):
        return {}
    rows = Interrupt.objects.for_list().filter(pk__in=[keepable(pk) for pk in ids])
    rows = rows.prefetch_related("votes")
    return {row.pk: row for row in rows}


def _uuid(text: str) -> str:
    try:
        return str(uuid.UUID(text))
    except ValueError:
        return ""
