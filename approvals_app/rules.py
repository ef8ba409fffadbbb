"""Who may decide: permission keys, delegations, and the rule of four eyes."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from approvals_app.models import Delegation, Interrupt, PermissionKey, Principal
from approvals_app.models.decisions import UNDELIVERED
from approvals_app.models.interrupts import OPERATE
from sessions_app.models import Message, Session

SEE = "approvals_app.view_interrupt"


def permission_keys(user: Principal) -> frozenset[str] | None:
    """The permission keys that ``user`` may decide by; None means all (a superuser).

    Held through groups, or handed over by somebody who holds them. One query, for every page.
    """
    if not user.is_active or not user.is_authenticated:
        return frozenset()
    if user.is_superuser:  # type: ignore[union-attr]
        return None
    lent = Delegation.objects.in_force().filter(
        Q(giver__is_superuser=True) | Q(giver__groups__permission_keys=OuterRef("pk")),
        receiver=user,
        key=OuterRef("key"),
    )
    rows = PermissionKey.objects.filter(Q(groups__user=user) | Exists(lent))
    return frozenset(rows.values_list("key", flat=True))


def counted_keys(user: Principal) -> frozenset[str] | None:
    """As `permission_keys`, with "" for whoever may answer questions, which stand under no key."""
    keys = permission_keys(user)
    if keys is None or not user.has_perm(OPERATE):
        return keys
    return keys | {""}


def own_keys(user: Principal) -> frozenset[str] | None:
    """The keys that ``user`` holds through groups; None means all (a superuser)."""
    if not user.is_active or not user.is_authenticated:
        return frozenset()
    if user.is_superuser:  # type: ignore[union-attr]
        return None
    return frozenset(PermissionKey.objects.filter(groups__user=user).values_list("key", flat=True))


def lent_keys(user: Principal) -> dict[str, User]:
    """The keys that others have handed to ``user``, and who did; one level deep, never passed on."""
    if not user.is_active or not user.is_authenticated:
        return {}
    lent = Delegation.objects.in_force().filter(receiver=user).select_related("giver")
    return {row.key: row.giver for row in lent if holds_itself(row.giver, row.key)}


def holds_itself(user: Principal, permission: str) -> bool:
    own = own_keys(user)
    return own is None or permission in own


def holds(user: Principal, permission: str) -> bool:
    keys = permission_keys(user)
    return keys is None or permission in keys


def may_decide(user: Principal, interrupt: Interrupt) -> bool:
    """Whether ``user`` may decide on ``interrupt``: sees approvals, holds its permission key, and
    is not kept out by four eyes."""
    return standing_to_decide(user, interrupt).may


def may_decide_now(user: Principal, interrupt: Interrupt) -> bool:
    """As `may_decide`, and it is open to a word of theirs: neither over nor about to be, and they
    have not voted. Somebody's hold does not count, since it can be taken over."""
    if interrupt.state != Interrupt.State.PENDING or interrupt.deadline <= timezone.now():
        return False
    if any(decision.state in UNDELIVERED for decision in interrupt.decisions.all()):
        return False
    voted = interrupt.votes.filter(revision=interrupt.revision, person=user.pk)
    return may_decide(user, interrupt) and not voted.exists()


@dataclass(frozen=True)
class Standing:
    """Whether a person may decide, for whom they would, and what keeps them out."""

    holds: bool
    for_whom: User | None = None
    barred_because: str = ""

    @property
    def may(self) -> bool:
        return self.holds and not self.barred_because


def standing_to_decide(user: Any, interrupt: Interrupt) -> Standing:
    """How ``user`` stands to ``interrupt``. Every surface asks here, superusers included."""
    if interrupt.is_question:
        return Standing(holds=user.is_active and user.has_perm(OPERATE))
    if not user.is_active or not user.has_perm(SEE):
        return Standing(holds=False)
    for_whom = None
    if not holds_itself(user, interrupt.permission):
        for_whom = lent_keys(user).get(interrupt.permission)
        if for_whom is None:
            return Standing(holds=False)
    because = four_eyes_bars(user, for_whom, interrupt)
    return Standing(holds=True, for_whom=for_whom, barred_because=because)


def tied_to(user: Principal) -> QuerySet[User, int]:
    """The ids of ``user`` and of all who have handed them a permission: for four eyes, one person."""
    givers = Delegation.objects.in_force().filter(receiver=user).values("giver")
    return User.objects.filter(Q(pk=user.pk) | Q(pk__in=givers)).values_list("pk", flat=True)


def barred_rows(tied: Iterable[int]) -> Q:
    """`four_eyes_bars` as the database can ask it, of interrupts."""
    told = Message.objects.filter(session=OuterRef("session"), turn=OuterRef("turn"))
    author = Q(author__isnull=True) | Q(author__in=tied)
    editor = Q(edited_by__isnull=True) | Q(edited_by__in=tied)
    wrote = told.filter(author | (Q(edited_at__isnull=False) & editor))
    by = Q(decided_by__isnull=True) | Q(decided_by__in=tied)
    answered = _answers().filter(by, session=OuterRef("session"), turn=OuterRef("turn"))
    asked = Q(session__started_by__isnull=True) | Q(session__started_by__in=tied)
    led = Session.behind.through.objects.filter(session=OuterRef("session"), user__in=tied)
    return Q(policy__four_eyes=True) & (
        asked | ~Exists(told) | Exists(wrote) | Exists(answered) | Exists(led)
    )


def _answers() -> QuerySet[Interrupt]:
    return Interrupt.objects.filter(kind=Interrupt.Kind.QUESTION, state=Interrupt.State.ANSWERED)


def writers(turns: Collection[tuple[str, int]]) -> dict[tuple[str, int], set[int | None]]:
    """Who wrote, edited or answered what each turn, (session, number), was told, or had another say
    in its session (`Session.behind`); None is somebody unknown."""
    told = Message.objects.filter(
        session__in={session for session, _ in turns}, turn__in={turn for _, turn in turns}
    )
    wrote: dict[tuple[str, int], set[int | None]] = {}
    for session, turn, author, edited_by, edited_at in told.values_list(
        "session", "turn", "author", "edited_by", "edited_at"
    ):
        wrote.setdefault((session, turn), set()).update(
            {author} if edited_at is None else {author, edited_by}
        )
    answers = _answers().filter(
        session__in={session for session, _ in wrote}, turn__in={turn for _, turn in wrote}
    )
    for session, turn, person in answers.values_list("session", "turn", "decided_by"):
        wrote.get((session, turn), set()).add(person)
    if wrote:
        led = Session.behind.through.objects.filter(session__in={session for session, _ in wrote})
        behind: dict[str, set[int]] = {}
        for session, person in led.values_list("session", "user"):
            behind.setdefault(session, set()).add(person)
        wrote = {turn: {*people, *behind.get(turn[0], ())} for turn, people in wrote.items()}
    return {turn: wrote.get(turn) or {None} for turn in turns}


def four_eyes_bars(user: Any, for_whom: User | None, interrupt: Interrupt) -> str:
    """Why the rule of four eyes keeps ``user`` out, in words; "" when it does not.

    An unknown requester means refusal: then nobody can be shown to be another person.
    """
    if not interrupt.policy.get("four_eyes"):
        return ""
    session = interrupt.session
    turn = (session.pk, interrupt.turn)
    wrote = writers([turn])[turn]
    if session.started_by_id is None or None in wrote:
        return "it is not known who asked"
    for person in (session.started_by_id, *sorted(filter(None, wrote))):
        if user.pk == person:
            return f"you {_say_of(person, interrupt)}"
        if for_whom is not None and for_whom.pk == person:
            name = for_whom.get_username()
            return f"{name}, for whom you would decide, {_say_of(person, interrupt)}"
        lent = Delegation.objects.in_force().filter(giver_id=person, receiver=user)
        if lent.exists():
            return f"somebody who {_say_of(person, interrupt)} has handed you a permission"
    return ""


def _say_of(person: int, interrupt: Interrupt) -> str:
    """What ties ``person``, one of its `writers` or who started it, to what is asked."""
    turn = {"session": interrupt.session_id, "turn": interrupt.turn}
    if person == interrupt.session.started_by_id:
        return "started this session"
    if Message.objects.filter(**turn, author=person).exists():
        return "wrote to it last"
    if Message.objects.filter(**turn, edited_by=person).exists():
        return "edited what it was told last"
    if _answers().filter(**turn, decided_by=person).exists():
        return "answered its question"
    return "had a say in it (its settings, an edited message, or a session above or below it)"
