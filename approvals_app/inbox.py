"""Which approvals a list shows and in which order, and all that the page of one of them needs."""

from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Case, IntegerField, Q, QuerySet, Value, When
from django.db.models.functions import Length, Substr
from django.utils import timezone

from approvals_app.inbox_filters import ApprovalFilters
from approvals_app.models import Decision, Interrupt
from approvals_app.models.decisions import UNDELIVERED
from approvals_app.models.interrupts import OPERATE
from approvals_app.questions import first_words
from approvals_app.rules import barred_rows, lent_keys, own_keys, tied_to
from approvals_app.twins import LONGEST_TWIN
from dexweb.paging import Page, keyset_page
from sessions_app.models import Agent, ToolCall

ROWS_AT_MOST = 100
COUNTED = 1000
PREVIEW = 4000
TOOLS_OFFERED = 200

# Pending ones: those for this user first, then by risk and deadline. Others: newest first.
PENDING_ORDER = ("rank", "danger", "deadline", "id")
DECIDED_ORDER = ("-decided_at", "-id")
ORDERS = {"pending": PENDING_ORDER, "all": ("-asked_at", "-id")}


@dataclass(frozen=True)
class Standing:
    """What is known of an interrupt beside its own row."""

    call: ToolCall | None
    delivering: Decision | None
    refused: Decision | None


@dataclass(frozen=True)
class Viewer:
    """What of a person the lists go by, read once a request. ``own`` None: every key."""

    pk: int
    own: frozenset[str] | None
    lent: dict[str, User]
    tied_to: list[int]
    operates: bool

    @classmethod
    def of(cls, user: Any) -> "Viewer":
        operates = user.has_perm(OPERATE)
        return cls(user.pk, own_keys(user), lent_keys(user), list(tied_to(user)), operates)


def page_of_approvals(filters: ApprovalFilters, viewer: Viewer, cursor: str) -> Page[Interrupt]:
    """One page; each row knows ``rank`` (0: the viewer may decide), ``for_whom`` and ``held``."""
    rows = filters.select(ranked(_for_lines(), viewer), viewer)
    order = ORDERS.get(filters.state, DECIDED_ORDER)
    page = keyset_page(rows, order, cursor, filters.limit)
    mark(page.rows, viewer)
    return page


def rows_by_id(text: str, filters: ApprovalFilters | None, viewer: Viewer) -> list[Interrupt]:
    """The approvals of a comma-separated list of ids, in its order; under ``filters`` if given."""
    ids = [interrupt_id for interrupt_id in text.split(",") if interrupt_id][:ROWS_AT_MOST]
    rows = ranked(_for_lines(), viewer).filter(pk__in=ids)
    found = list(rows if filters is None else filters.select(rows, viewer))
    found.sort(key=lambda row: ids.index(row.pk))
    mark(found, viewer)
    return found


def count(filters: ApprovalFilters, viewer: Viewer) -> str:
    """How many there are, as it is shown; beyond a thousand nobody counts on."""
    rows = filters.select(ranked(Interrupt.objects.all(), viewer), viewer).order_by()
    number = rows.values("pk")[: COUNTED + 1].count()
    return f"{COUNTED}+" if number > COUNTED else str(number)


def names() -> tuple[list[str], list[str]]:
    """The agents and the tools that a filter offers."""
    tools = Interrupt.objects.order_by("tool").values_list("tool", flat=True).distinct()
    agents = Agent.objects.order_by("name").values_list("name", flat=True)
    return list(agents[:TOOLS_OFFERED]), list(tools[:TOOLS_OFFERED])


def ranked(rows: Any, viewer: Viewer) -> Any:
    """``rows`` with ``rank``, 0 where the viewer may decide and 1 elsewhere, and ``danger``, 0 for
    the highest risk (and for one that is not known)."""
    question = Q(kind=Interrupt.Kind.QUESTION)
    others = [
        When(question, then=Value(0 if viewer.operates else 1)),
        When(barred_rows(viewer.tied_to), then=Value(1)),
    ]
    if viewer.own is not None:
        keys = viewer.own | frozenset(viewer.lent)
        others.append(When(~Q(permission__in=keys), then=Value(1)))
    mine = Case(*others, default=Value(0), output_field=IntegerField())
    danger = Case(
        When(question | Q(risk="low"), then=Value(2)),
        When(risk="medium", then=Value(1)),
        default=Value(0),
        output_field=IntegerField(),
    )
    return rows.annotate(rank=mine, danger=danger)


def mark(rows: list[Interrupt], viewer: Viewer) -> None:
    """Sets on each row ``for_whom``, whose permission the viewer would decide with ("" for their
    own), ``held``, ``held_by_me`` and ``asks``, a question in a line."""
    now = timezone.now()
    for row in rows:
        borrowed = viewer.own is not None and row.permission not in viewer.own
        giver = viewer.lent.get(row.permission) if borrowed else None
        row.for_whom = giver.get_username() if giver else ""
        row.held = bool(row.hold_until and row.hold_until > now)
        row.asks = first_words(row.args_start) if row.is_question else ""  # type: ignore[attr-defined]
        row.held_by_me = row.held and row.hold_by_id == viewer.pk


def _for_lines() -> Any:
    """A line shows the beginning of the arguments; a long text stays in the database."""
    preview = Substr("args", 1, LONGEST_TWIN)
    rows = Interrupt.objects.for_list().defer("args", "original_args")
    return rows.annotate(args_start=preview, args_length=Length("args"))


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
