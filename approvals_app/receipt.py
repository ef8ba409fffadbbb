"""The receipt of a gated call: what was asked, what was approved and by whom, and what ran."""

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from approvals_app.models import Decision, Interrupt
from sessions_app.models import ToolCall


@dataclass(frozen=True)
class Asked:
    """``args_hash``: of what the agent asked for, before any edit."""

    tool: str
    effect: str
    step: str
    call_id: str
    at: datetime
    asked_by_step: str


@dataclass(frozen=True)
class Policy:
    """The policy that it was asked under; ``version`` is 0 where none was recorded."""

    version: int
    permission: str
    risk: str
    approve_n: int
    deny_m: int
    four_eyes: bool


@dataclass(frozen=True)
class Said:
    """One person's word. ``on_behalf_of`` is "" when they decided for themselves."""

    by: str
    on_behalf_of: str
    verdict: str
    revision: int
    edited: bool
    reason: str
    at: datetime


@dataclass(frozen=True)
class Decided:
    """How the wait ended. ``args_hash`` is "" unless the call was let run; ``by`` "" by nobody."""

    state: str
    at: datetime
    by: str
    args_hash: str
    revision: int
    edited_by: str
    votes: list[Said]


@dataclass(frozen=True)
class Ran:
    """What was sent to the tool, and what came of it; ``outcome`` is "" until it has ended."""

    args_hash: str
    at: datetime
    ended_at: datetime | None
    attempts: int
    outcome: str


@dataclass(frozen=True)
class Receipt:
    """``decided`` is None while it waits, ``ran`` when the tool was never called for it.

    ``equal``: whether what ran is what was approved; None when nothing ran or no hash was kept.
    """

    interrupt_id: str
    session_id: str
    asked: Asked
    policy: Policy
    decided: Decided | None
    ran: Ran | None
    equal: bool | None

    def as_json(self) -> dict[str, Any]:
        """Plain data; times are ISO 8601 texts."""
        plain: dict[str, Any] = _plain(asdict(self))
        return plain


def receipt_of(interrupt: Interrupt) -> Receipt:
    """The receipt of ``interrupt``, which comes with its session. Three queries."""
    calls = ToolCall.objects.filter(session=interrupt.session_id, call_id=interrupt.call_id)
    call = calls.defer("args", "result", "words", "original_args").first()
    decided, ran = _decided(interrupt), _ran(interrupt, call)
    known = decided and ran and decided.args_hash and ran.args_hash
    return Receipt(
        interrupt_id=interrupt.pk,
        session_id=interrupt.session_id,
        asked=_asked(interrupt, call),
        policy=_policy(interrupt),
        decided=decided,
        ran=ran,
        equal=decided.args_hash == ran.args_hash if known and decided and ran else None,
    )


def receipts_of_call(session_id: str, call_id: str) -> list[Receipt]:
    """Every receipt of a call, oldest first; one that was asked for anew has several."""
    rows = Interrupt.objects.for_list().filter(session=session_id, call_id=call_id)
    return [receipt_of(row) for row in rows.order_by("asked_at", "id")]


def _asked(interrupt: Interrupt, call: ToolCall | None) -> Asked:
    return Asked(
        tool=interrupt.tool,
        effect=interrupt.effect,
        step=interrupt.step_id,
        call_id=interrupt.call_id,
        at=interrupt.asked_at,
        asked_by_step=call.model_step if call else "",
    )


def _policy(interrupt: Interrupt) -> Policy:
    policy = interrupt.policy
    return Policy(
        version=policy.get("version", 0),
        permission=interrupt.permission,
        risk=interrupt.risk,
        approve_n=policy.get("approve_n", 1),
        deny_m=policy.get("deny_m", 1),
        four_eyes=policy.get("four_eyes", False),
    )


def _decided(interrupt: Interrupt) -> Decided | None:
    if interrupt.state == Interrupt.State.PENDING or interrupt.decided_at is None:
        return None
    return Decided(
        state=interrupt.state,
        at=interrupt.decided_at,
        by=interrupt.decided_by_name,
        args_hash=interrupt.args_hash if was_approved(interrupt) else "",
        revision=interrupt.revision,
        edited_by=interrupt.edited_by_name,
        votes=votes_of(interrupt),
    )


def was_approved(interrupt: Interrupt) -> bool:
    return interrupt.state in (Interrupt.State.APPROVED, Interrupt.State.INVALIDATED)


def votes_of(interrupt: Interrupt) -> list[Said]:
    """Who said what, oldest first: the votes, or the one decision where one was enough."""
    votes = [
        Said(
            by=vote.person_name,
            on_behalf_of=vote.on_behalf_of_name,
            verdict=vote.verdict,
            revision=vote.revision,
            edited=vote.edited,
            reason=vote.reason,
            at=vote.at,
        )
        for vote in interrupt.votes.all()
    ]
    return votes or _decision(interrupt)


def _decision(interrupt: Interrupt) -> list[Said]:
    rows = interrupt.decisions.filter(state=Decision.State.DELIVERED)
    return [
        Said(
            by=row.actor.get_username(),
            on_behalf_of=row.on_behalf_of.get_username() if row.on_behalf_of else "",
            verdict=row.verdict,
            revision=row.revision,
            edited=bool(row.edited_args),
            reason=row.reason,
            at=row.created_at,
        )
        for row in rows.select_related("actor", "on_behalf_of")
    ]


def _ran(interrupt: Interrupt, call: ToolCall | None) -> Ran | None:
    """Only an approval that was not refused at the last check has let the call run."""
    if interrupt.state != Interrupt.State.APPROVED or call is None or call.started_at is None:
        return None
    if not call.begun_attempt and not call.ran_hash:
        return None
    return Ran(
        args_hash=call.ran_hash,
        at=call.started_at,
        ended_at=call.ended_at,
        attempts=call.attempts,
        outcome=call.outcome,
    )


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return value
