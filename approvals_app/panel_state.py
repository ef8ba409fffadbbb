"""Who is at an approval and who has said what, as the panel shows it."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from approvals_app.models import Interrupt, Vote

EXTENSIONS = (("+15 min", timedelta(minutes=15)), ("+1 h", timedelta(hours=1)))


@dataclass(frozen=True)
class HoldShown:
    """``state``: none, mine or other."""

    state: str
    by: str = ""
    since: datetime | None = None
    until: datetime | None = None


def hold_of(interrupt: Interrupt, user: Any, now: datetime) -> HoldShown:
    until = interrupt.hold_until
    if until is None or until <= now:
        return HoldShown("none")
    state = "mine" if interrupt.hold_by_id == user.pk else "other"
    return HoldShown(state, interrupt.hold_by_name, interrupt.hold_since, until)


@dataclass(frozen=True)
class VotesShown:
    """Votes on what would run now; ``earlier`` were cast before an edit and count no more."""

    needed: int
    denies: int
    now: list[Vote]
    earlier: list[Vote]
    mine: Vote | None

    @property
    def approvals(self) -> int:
        return sum(vote.verdict == "approve" for vote in self.now)

    @property
    def rejections(self) -> int:
        return sum(vote.verdict == "reject" for vote in self.now)

    @property
    def count(self) -> int:
        return len(self.now) + len(self.earlier)

    @property
    def told(self) -> bool:
        """Whether there is anything to say about votes: one word decides most approvals."""
        return self.needed > 1 or self.denies > 1 or self.count > 0

    @property
    def missing(self) -> int:
        return max(0, self.needed - self.approvals)

    @property
    def approved_by(self) -> str:
        return ", ".join(vote.person_name for vote in self.now if vote.verdict == "approve")

    @property
    def mine_would(self) -> str:
        """What one more approval would do, in words."""
        if self.missing <= 1:
            return "Yours would be the last that is needed: then it runs."
        more = self.missing - 1
        return f"With yours, {more} more {'is' if more == 1 else 'are'} needed before it runs."

    @property
    def rejection_words(self) -> str:
        if self.denies <= 1:
            return "One rejection ends it."
        return f"{self.denies} rejections end it; {self.rejections or 'none'} so far."


def votes_shown(interrupt: Interrupt, user: Any) -> VotesShown:
    policy = interrupt.policy
    votes = list(interrupt.votes.all())
    now = [vote for vote in votes if vote.revision == interrupt.revision]
    return VotesShown(
        needed=max(1, policy.get("approve_n", 1)),
        denies=max(1, policy.get("deny_m", 1)),
        now=now,
        earlier=[vote for vote in votes if vote.revision != interrupt.revision],
        mine=next((vote for vote in now if vote.person_id == user.pk), None),
    )


def extensions(interrupt: Interrupt) -> list[tuple[str, datetime]]:
    """What the deadline can be moved to with one press, and what it would be then."""
    return [(words, interrupt.deadline + more) for words, more in EXTENSIONS]
