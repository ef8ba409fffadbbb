"""Which approvals a list shows, and all that the page of one of them needs."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Case, IntegerField, QuerySet, Value, When
from django.db.models.functions import Substr

from approvals_app.models import Decision, Interrupt
from approvals_app.rules import permission_keys
from dexweb.paging import Page, keyset_page
from sessions_app.models import ToolCall

STATES = {"pending": "Pending", "decided": "Decided", "all": "All"}
ROWS_AT_MOST = 100
PREVIEW = 4000
UNDELIVERED = (Decision.State.SUBMITTING, Decision.State.DELIVERY_PENDING)

# Pending ones: those for this user first, then by deadline. Others: newest first.
ORDERS = {
    "pending": ("rank", "deadline", "id"),
    "decided": ("-decided_at", "-id"),
    "all": ("-asked_at", "-id"),
}


@dataclass(frozen=True)
class Standing:
    """What is known of an interrupt beside its own row."""

    call: ToolCall | None
    delivering: Decision | None
    refused: Decision | None


def page_of_approvals(state: str, user: Any, cursor: str, limit: int) -> Page[Interrupt]:
    rows = ranked(Interrupt.objects.for_list(), user)
    if state == "pending":
        rows = rows.pending()
    elif state == "decided":
        rows = rows.exclude(state=Interrupt.State.PENDING).filter(decided_at__isnull=False)
    return keyset_page(rows, ORDERS[state], cursor, limit)


def rows_by_id(text: str, state: str, user: Any) -> list[Interrupt]:
    """The approvals of a comma-separated list of ids; ``state`` pending leaves out decided ones."""
    ids = [interrupt_id for interrupt_id in text.split(",") if interrupt_id][:ROWS_AT_MOST]
    rows = ranked(Interrupt.objects.for_list(), user).filter(pk__in=ids)
    return list(rows.pending() if state == "pending" else rows)


def ranked(rows: Any, user: Any) -> Any:
    """``rows`` with ``rank``: 0 where ``user`` holds the permission key, 1 elsewhere."""
    keys = permission_keys(user)
    if keys is None:
        return rows.annotate(rank=Value(0, IntegerField()))
    mine = When(permission__in=keys, then=Value(0))
    return rows.annotate(rank=Case(mine, default=Value(1), output_field=IntegerField()))


def find(interrupt_id: str) -> Interrupt | None:
    return Interrupt.objects.for_list().filter(pk=interrupt_id).first()


def standing(interrupt: Interrupt, user: Any) -> Standing:
    """The call behind ``interrupt``, a decision that is on its way, and ``user``'s refused one."""
    calls = ToolCall.objects.filter(session=interrupt.session_id, call_id=interrupt.call_id)
    preview = Substr("result", 1, PREVIEW)
    call = calls.defer("args", "result").annotate(result_preview=preview).first()
    decisions: QuerySet[Decision] = interrupt.decisions.select_related("actor").order_by("-id")
    rows = list(decisions[:20])
    delivering = next((row for row in rows if row.state in UNDELIVERED), None)
    refused = next(
        (row for row in rows if row.state == Decision.State.REFUSED and row.actor_id == user.pk),
        None,
    )
    return Standing(call, delivering if interrupt.state == "pending" else None, refused)
