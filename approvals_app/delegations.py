"""Handing a permission key to another person for a time, and taking it back. All of it is audited."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from approvals_app import audit
from approvals_app.models import Delegation, PermissionKey
from approvals_app.rules import SEE, holds_itself, own_keys
from dexweb.engine.errors import DexwebError
from sessions_app.stream.notify import notify
from sessions_app.text import keepable

LONGEST = timedelta(days=30)
FURTHEST = timedelta(days=365)
REASON_LENGTH = 500
LISTED = 200
PEOPLE_OFFERED = 200


@dataclass
class InvalidDelegation(DexwebError):
    errors: list[str] | None = None
    code = "invalid_delegation"
    title = "This cannot be handed over so"

    @property
    def message(self) -> str:
        return "Nothing was handed over. Mend what is named here and send it again."


@dataclass
class KeyNotHeld(DexwebError):
    permission: str = ""
    code = "key_not_held"
    status = 403
    title = "You do not hold this permission yourself"

    @property
    def message(self) -> str:
        return (
            f"Only who holds {self.permission} through a group can hand it over; "
            "what was lent to you cannot be passed on."
        )


@dataclass
class AlreadyDelegated(DexwebError):
    receiver: str = ""
    until: str = ""
    code = "already_delegated"
    status = 409
    title = "Already handed over"

    @property
    def message(self) -> str:
        return (
            f"{self.receiver} has this permission from you for some of that time. Revoke it first."
        )


@dataclass
class DelegationNotFound(DexwebError):
    delegation_id: int = 0
    code = "delegation_not_found"
    status = 404
    title = "No such delegation"

    @property
    def message(self) -> str:
        return "You have given and got no such delegation."


@dataclass
class DelegationOver(DexwebError):
    at: str = ""
    code = "delegation_over"
    status = 409
    title = "It is over already"

    @property
    def message(self) -> str:
        return "This delegation was revoked or has ended, so there is nothing to take back."


@dataclass(frozen=True)
class Handed:
    """What a person wants to hand over; ``starts_at`` None: from now on."""

    receiver: str
    key: str
    reason: str
    ends_at: datetime
    starts_at: datetime | None = None


def give(user: User, asked: Handed) -> Delegation:
    """Hand ``user``'s own key to another; counts at once for what is pending.

    Raises KeyNotHeld, InvalidDelegation, AlreadyDelegated. What was refused is audited too.
    """
    try:
        return _give(user, asked)
    except DexwebError as error:
        audit.record(
            user,
            "delegation.refused",
            f"key:{asked.key}",
            receiver=asked.receiver[:150],
            code=error.code,
        )
        raise


@transaction.atomic
def _give(user: User, asked: Handed) -> Delegation:
    # One at a time for each giver, so that two at once cannot overlap.
    User.objects.select_for_update().get(pk=user.pk)
    known = PermissionKey.objects.filter(key=asked.key).exists()
    if not known or not user.has_perm(SEE) or not holds_itself(user, asked.key):
        raise KeyNotHeld(permission=asked.key)
    now = timezone.now()
    row = Delegation(
        giver=user,
        key=asked.key,
        reason=keepable(asked.reason).strip(),
        starts_at=max(asked.starts_at or now, now),
        ends_at=asked.ends_at,
    )
    receiver = _receiver(asked.receiver)
    faults = [*_faults_of_person(user, receiver), *_faults(row, now)]
    if receiver is None or faults:
        raise InvalidDelegation(errors=faults)
    row.receiver = receiver
    _refuse_overlap(row)
    row.save()
    _record(user, row, "delegation.given")
    return row


def revoke(user: User, delegation_id: int) -> Delegation:
    """Take it back (its giver, or a superuser) or give it back (its receiver).

    Raises DelegationNotFound, DelegationOver.
    """
    with transaction.atomic():
        row = find(user, delegation_id)
        if row is None:
            raise DelegationNotFound(delegation_id=delegation_id)
        now = timezone.now()
        standing = Delegation.objects.filter(pk=row.pk, revoked_at=None, ends_at__gt=now)
        if not standing.update(revoked_at=now):
            raise DelegationOver(at=(row.revoked_at or row.ends_at).isoformat())
        row.revoked_at = now
        _record(user, row, "delegation.revoked")
    return row


def find(user: User, delegation_id: int) -> Delegation | None:
    """The delegation, for its giver, its receiver or a superuser."""
    mine = Q() if user.is_superuser and user.is_active else Q(giver=user) | Q(receiver=user)
    rows = Delegation.objects.select_related("giver", "receiver")
    return rows.filter(mine, pk=delegation_id).first()


def keys_to_give(user: Any) -> list[str]:
    """The keys that ``user`` may hand over."""
    own = own_keys(user)
    if own is not None:
        return sorted(own)
    return list(PermissionKey.objects.values_list("key", flat=True)[:LISTED])


def of(user: Any, direction: str = "") -> QuerySet[Delegation]:
    """What ``user`` has given, received, or both, newest first, those that are over too."""
    sides = {"given": Q(giver=user), "received": Q(receiver=user)}
    mine = sides.get(direction, Q(giver=user) | Q(receiver=user))
    return Delegation.objects.filter(mine).select_related("giver", "receiver")


def people_to_choose(user: Any) -> list[str]:
    """Names that the form offers; any other active person can be typed."""
    rows = User.objects.filter(is_active=True).exclude(pk=user.pk).order_by("username")
    return list(rows.values_list("username", flat=True)[:PEOPLE_OFFERED])


def with_states(rows: QuerySet[Delegation]) -> list[tuple[Delegation, str]]:
    return [(row, state_of(row)) for row in rows[:LISTED]]


def state_of(row: Delegation) -> str:
    """in force, planned, without effect (a person lacks what it takes by now), ended or revoked."""
    now = timezone.now()
    if row.revoked_at:
        return "revoked"
    if row.ends_at <= now:
        return "ended"
    if not (row.receiver.is_active and holds_itself(row.giver, row.key)):
        return "without effect"
    return "planned" if row.starts_at > now else "in force"


def _receiver(name: str) -> User | None:
    return User.objects.filter(username=keepable(name).strip(), is_active=True).first()


def _faults_of_person(user: User, receiver: User | None) -> list[str]:
    if receiver is None:
        return ["receiver: There is no active person of this name."]
    if receiver.pk == user.pk:
        return ["receiver: Choose somebody else."]
    if not receiver.has_perm(SEE):
        return ["receiver: This person may not see approvals, so could not decide any."]
    return []


def _faults(row: Delegation, now: datetime) -> list[str]:
    faults = []
    if not row.reason:
        faults.append("reason: Say why, so that others understand what was decided for you.")
    if len(row.reason) > REASON_LENGTH:
        faults.append(f"reason: Use at most {REASON_LENGTH} characters.")
    if row.ends_at <= row.starts_at:
        faults.append("ends_at: It must end after it starts, and after now.")
    elif row.ends_at - row.starts_at > LONGEST:
        faults.append(f"ends_at: It can last at most {LONGEST.days} days.")
    if row.starts_at > now + FURTHEST:
        faults.append("starts_at: It must start within a year.")
    return faults


def _refuse_overlap(row: Delegation) -> None:
    same = Delegation.objects.filter(
        giver=row.giver, receiver=row.receiver, key=row.key, revoked_at=None
    )
    standing = same.filter(starts_at__lt=row.ends_at, ends_at__gt=row.starts_at).first()
    if standing:
        raise AlreadyDelegated(
            receiver=row.receiver.get_username(), until=standing.ends_at.isoformat()
        )


def _record(user: User, row: Delegation, action: str) -> None:
    audit.record(
        user,
        action,
        f"delegation:{row.pk}",
        key=row.key,
        giver=row.giver.get_username(),
        receiver=row.receiver.get_username(),
        starts_at=row.starts_at.isoformat(),
        ends_at=row.ends_at.isoformat(),
        reason=row.reason,
    )
    # Open inboxes look again: what is pending is somebody else's too from here on.
    notify("")
