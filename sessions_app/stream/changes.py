"""What changed in the lists: sessions by their time of change, approvals by what is pending."""

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Case, Count, F, Value, When
from django.utils import timezone

from approvals_app.models import Delegation, Interrupt
from approvals_app.rules import writers
from sessions_app.models import Session
from sessions_app.stream.feed import KEPT_IDS, ListReader

# Rows commit out of the order of their times, and clocks of hosts differ by a little: each look
# goes back this far, and remembers what it has told.
OVERLAP = timedelta(seconds=10)
PENDING_LOOKED_AT = 5000


class SessionChanges:
    """Ids of sessions whose rows changed. Who joins is told those of the last seconds too, so that
    nothing falls between drawing a page and opening its socket."""

    def __init__(self) -> None:
        self.readers: set[ListReader] = set()
        self.forget()

    def forget(self) -> None:
        self._told: dict[str, Any] = {}
        self._since: datetime | None = None

    def recent(self) -> list[str]:
        return list(self._told)

    def look(self) -> dict[str, Any]:
        """Reads the database; `apply` gets the answer in the loop."""
        now = timezone.now()
        rows = dict(
            Session.objects.filter(updated_at__gte=(self._since or now) - OVERLAP)
            .order_by("-updated_at", "-id")
            .values_list("id", "updated_at")[: KEPT_IDS + 1]
        )
        self._since = now
        return rows

    def apply(self, rows: dict[str, Any]) -> None:
        changed = [pk for pk, at in rows.items() if self._told.get(pk) != at]
        self._told = rows
        if changed:
            for reader in self.readers:
                reader.add(changed)


class ApprovalChanges:
    """Ids of interrupts that became pending, changed while pending, or are pending no more."""

    def __init__(self) -> None:
        self.readers: set[ListReader] = set()
        self.forget()

    def forget(self) -> None:
        self.looked = False
        self._pending: dict[str, tuple[Any, ...]] = {}
        self._by_permission: Counter[str] = Counter()
        #: Those that want another pair of eyes: their key, who started the session or wrote last.
        self._four_eyes: list[tuple[str, frozenset[int | None]]] = []
        #: Which delegations count for what is pending; whoever hears of it reads their keys anew.
        self.lent: frozenset[tuple[int, ...]] = frozenset()

    def recent(self) -> list[str]:
        return []

    def pending(self, permissions: frozenset[str] | None, tied: frozenset[int]) -> int:
        """How many are pending that the holder of these keys may decide; None holds all.

        ``tied``: who they are for the rule of four eyes (`rules.tied_to`).
        """
        counts = self._by_permission
        keys = counts.keys() if permissions is None else permissions
        barred = sum(
            1
            for key, asked in self._four_eyes
            if key in keys and any(person is None or person in tied for person in asked)
        )
        return sum(counts[key] for key in keys) - barred

    def look(self) -> dict[str, Any]:
        """Reads the database; `apply` gets the answer in the loop."""
        rows = Interrupt.objects.pending().order_by("deadline", "id")
        four_eyes = When(policy__four_eyes=True, then=Value(True))
        fields = rows.annotate(
            said=Count("votes"),
            apart=Case(four_eyes, default=Value(False)),
            starter=F("session__started_by"),
        ).values_list(
            *("id", "revision", "deadline", "hold_by", "hold_until", "said"),
            *("session", "turn", "apart", "starter", "permission"),
        )[:PENDING_LOOKED_AT]
        asked = writers([(session, turn) for *_, session, turn, apart, _, _ in fields if apart])
        lent: dict[str, tuple[int, ...]] = {}
        delegations = Delegation.objects.in_force().order_by("id")
        for key, number in delegations.values_list("key", "id"):
            lent[key] = (*lent.get(key, ()), number)
        return {
            pk: (
                *rest,
                apart,
                frozenset({starter, *asked.get((session, turn), ())}),
                lent.get(permission, ()),
                permission,
            )
            for pk, *rest, session, turn, apart, starter, permission in fields
        }

    def apply(self, rows: dict[str, Any]) -> None:
        before, self._pending = self._pending, rows
        self._by_permission = Counter(permission for *_, permission in rows.values())
        self._four_eyes = [
            (permission, asked) for *_, apart, asked, _, permission in rows.values() if apart
        ]
        self.lent = frozenset(lent for *_, lent, _ in rows.values())
        first, self.looked = not self.looked, True
        changed = [pk for pk in {**before, **rows} if before.get(pk) != rows.get(pk)]
        if first or changed:
            for reader in self.readers:
                reader.add([] if first else changed)
