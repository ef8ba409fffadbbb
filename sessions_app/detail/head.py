"""The head of a session's page, and what waits for a person in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

from approvals_app.models import Interrupt
from sessions_app.detail.words import session_standing
from sessions_app.flow.limits import Limits
from sessions_app.limits import Meter, meters_of
from sessions_app.models import Session, Step
from sessions_app.spend.summary import limit_of
from sessions_app.state_words import StateWords

WAITING_READ = 50


@dataclass(frozen=True)
class Waiting:
    """One open approval; `mine`: the person who looks may decide it."""

    interrupt: Interrupt
    mine: bool


@dataclass(frozen=True)
class Head:
    """`operates`: the person who looks may send, cancel and stop; `raises`: raise its spend.

    `blocked` says in words which budget stops it; `limit` is (spent, limit) of its own budget.
    """

    session: Session
    standing: StateWords
    waiting: list[Waiting]
    operates: bool
    tokens: int
    meters: list[Meter]
    blocked: str
    raises: bool
    limit: tuple[Decimal, Decimal] | None
    #: (session, Step) that delegated to this one; None when people started it.
    parent: tuple[str, str] | None = None
    #: Sessions that this one has delegated to and waits for.
    children: list[Session] = field(default_factory=list)

    @property
    def turn_runs(self) -> bool:
        return self.session.open and self.session.phase != Session.Phase.IDLE

    @property
    def used_up(self) -> bool:
        return self.limit is not None and self.limit[0] >= self.limit[1]


def head_of(session: Session, user: object, now: datetime) -> Head:
    """What the head shows ``user``. Few queries, some of them only while something waits."""
    waiting = _waiting(session, user) if session.open else []
    deadline = waiting[0].interrupt.due if waiting else None
    if session.phase == Session.Phase.WAITING_TIMER:
        deadline = next_timer(session)
    return Head(
        session=session,
        standing=session_standing(session, deadline, now),
        waiting=waiting,
        operates=user.has_perm("sessions_app.operate_session"),  # type: ignore[attr-defined]
        blocked=_blocked(session),
        raises=user.has_perm("sessions_app.raise_spend"),  # type: ignore[attr-defined]
        limit=limit_of(session),
        parent=_parent(session) if session.parent_id else None,
        children=_children(session) if session.phase == Session.Phase.ACTING else [],
        tokens=session.input_tokens + session.output_tokens,
        meters=meters_of(session)[:2],
    )


def _blocked(session: Session) -> str:
    if not session.open or session.phase != Session.Phase.WAITING_SPEND:
        return ""
    waits = session.steps.filter(type="AwaitSpend").order_by("-position")
    return waits.values_list("detail", flat=True).first() or ""


def next_timer(session: Session) -> datetime | None:
    """When the first of the session's open timers fires."""
    open_ids = session.steps.filter(type="DurableWait", status="waiting").values("call_id")
    plans = session.calls.filter(call_id__in=open_ids).values_list("policy", flat=True)
    return min((datetime.fromisoformat(plan["until"]) for plan in plans), default=None)


def _parent(session: Session) -> tuple[str, str]:
    asked = session.delegations.values_list("call_id", flat=True)[:1]
    steps = Step.objects.filter(session=session.parent_id, call_id=asked).order_by("-position")
    return str(session.parent_id), steps.values_list("step_id", flat=True).first() or ""


def _children(session: Session) -> list[Session]:
    """Those that wait for people come first."""
    at_work = session.children.filter(status=Session.Status.RUNNING).select_related("agent")
    return list(at_work.order_by("-waiting", "created_at")[: Limits().children_at_once])


def _waiting(session: Session, user: object) -> list[Waiting]:
    """Open approvals, the nearest deadline first, and then open questions."""
    if not user.has_perm("approvals_app.view_interrupt"):  # type: ignore[attr-defined]
        return []
    found = list(
        Interrupt.objects.pending()
        .filter(session=session)
        .only("id", "kind", "step_id", "tool", "deadline", "permission", "risk")[:WAITING_READ]
    )
    if not found:
        return []
    rows = Interrupt.objects.filter(pk__in=[one.pk for one in found])
    mine = set(rows.decidable_by(user).values_list("pk", flat=True))  # type: ignore[arg-type]
    return [Waiting(one, one.pk in mine) for one in found]


def first_to_show(session: Session, waiting: list[Waiting]) -> str:
    """The Step that the panel opens with: what this person may decide, what waits, what moves."""
    mine = next((one for one in waiting if one.mine), None)
    if mine or waiting:
        return (mine or waiting[0]).interrupt.step_id
    newest = session.steps.exclude(type__in=["AwaitMessage", "ResumeTurn"])
    running = newest.filter(status__in=["active", "scheduled", "waiting"]).order_by("-position")
    step = running.values_list("step_id", flat=True).first()
    # A wait for spend that is over has nothing to say beside the call that it let through.
    ended = newest.exclude(type="AwaitSpend").order_by("-position")
    return step or ended.values_list("step_id", flat=True).first() or ""
