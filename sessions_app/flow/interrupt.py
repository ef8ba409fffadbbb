"""One wait for a person, as the Flow keeps it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime

from sessions_app.flow.state import Approval, ResolveInterrupt, ToolCallPlan
from sessions_app.flow.terms import Actor, ApprovalPolicy


@dataclass(frozen=True)
class Hold:
    """A person's name on an interrupt: "I am looking at this one"."""

    by: Actor
    since: datetime
    until: datetime


@dataclass
class Interrupt:
    """One wait. `state` leaves ``pending`` once, here and nowhere else."""

    interrupt_id: str
    call: ToolCallPlan
    policy: ApprovalPolicy
    permission: str
    deadline: datetime
    args_hash: str
    reminders: list[datetime]
    kind: str = "approval"
    answers: list[list[str]] = field(default_factory=list)
    revision: int = 1
    level: int = 0
    state: str = "pending"
    votes: dict[int, ResolveInterrupt] = field(default_factory=dict)
    hold: Hold | None = None
    by: Actor | None = None
    reason: str = ""
    closed_at: str = ""

    def approval(self) -> Approval:
        approvers = [vote.actor for vote in self.votes.values() if vote.verdict == "approve"]
        return Approval(
            self.interrupt_id,
            self.by,
            self.closed_at,
            self.permission,
            approvers,
            self.policy.validity,
        )

    def count(self, verdict: str) -> int:
        return sum(vote.verdict == verdict for vote in self.votes.values())

    def vote_of(self, rpc: ResolveInterrupt) -> ResolveInterrupt | None:
        """The vote that the same person has cast, or a delegate of theirs: they count once."""
        voices = {rpc.actor.id, _voice(rpc)}
        same = (vote for vote in self.votes.values() if voices & {vote.actor.id, _voice(vote)})
        return next(same, None)

    def next_alarm(self) -> datetime:
        """When something happens by itself: a reminder, the end of a hold, the deadline."""
        hold_ends = [self.hold.until] if self.hold else []
        return min([self.deadline, *self.reminders, *hold_ends])


def approved_call(interrupt: Interrupt) -> ToolCallPlan:
    """The call as it was approved, edited arguments included."""
    return replace(interrupt.call, args_hash=interrupt.args_hash)


def _voice(rpc: ResolveInterrupt) -> int:
    return (rpc.on_behalf_of or rpc.actor).id
