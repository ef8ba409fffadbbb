"""Who is told of what. `enqueue` writes it down with the fact; `spread` finds the people later."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from approvals_app.models import (
    Interrupt,
    Notification,
    NotificationChannel,
    NotificationDelivery,
    NotificationEvent,
    NotificationPreference,
)
from approvals_app.models.notifications import CALLS_TO_ACT
from approvals_app.notify import mail
from approvals_app.rules import SEE, holds, standing_to_decide
from sessions_app.flow.terms import Actor

ENDINGS = {
    Interrupt.State.APPROVED: NotificationEvent.DECIDE,
    Interrupt.State.REJECTED: NotificationEvent.DECIDE,
    Interrupt.State.ANSWERED: NotificationEvent.DECIDE,
    Interrupt.State.EXPIRED: NotificationEvent.EXPIRE,
}


def enqueue(interrupt: Interrupt, event: str, at: datetime, **more: Any) -> Notification:
    """Write down that ``interrupt`` is news, as it stands now; nobody is asked and nothing is sent.

    ``more`` goes over what is said of it.

    The caller is in the transaction of the fact, so what is told is also stored and decidable.
    """
    return Notification.objects.create(
        interrupt=interrupt,
        event=event,
        at=at,
        said={
            "state": interrupt.state,
            "permission": interrupt.permission,
            "keys": sorted(asked_keys(interrupt)),
            "deadline": interrupt.deadline.isoformat(),
            "level": interrupt.level,
            "revision": interrupt.revision,
            "by": interrupt.decided_by_name,
            "by_id": interrupt.decided_by_id,
            **more,
        },
    )


def enqueue_edit(interrupt: Interrupt, by: Actor, at: datetime) -> Notification:
    """The same, for arguments that ``by`` edited: all vote anew, above all those who had voted."""
    void = interrupt.votes.filter(revision__lt=interrupt.revision).exclude(person=by.id)
    voted = dict(void.values_list("person_id", "person_name"))
    return enqueue(
        interrupt,
        NotificationEvent.EDIT,
        at,
        by=by.name,
        by_id=by.id,
        voted=list(voted.values()),
        voted_ids=[pk for pk in voted if pk is not None],
    )


def enqueue_end(interrupt: Interrupt, at: datetime) -> Notification:
    """The same, for an approval that is over: decided, expired, or canceled in some way."""
    ending = ENDINGS.get(Interrupt.State(interrupt.state), NotificationEvent.CANCEL)
    return enqueue(interrupt, ending, at)


def asked_keys(interrupt: Interrupt) -> set[str]:
    """The permission keys whose holders were asked so far: the first, and one per escalation."""
    steps = interrupt.policy.get("escalation", [])[: interrupt.level]
    first = interrupt.policy.get("permission", interrupt.permission)
    return {first, interrupt.permission, *(step["permission"] for step in steps)}


def spread(notification: Notification) -> int:
    """Queue a delivery for everybody whom ``notification`` concerns, once, whoever comes first.

    Returns how many. One that concerns nobody is deleted.
    """
    # Found before the transaction begins: on SQLite everybody else's writes would wait for it.
    told = [
        *(
            NotificationDelivery(notification=notification, user=user)
            for user in people(notification)
        ),
        *(
            NotificationDelivery(notification=notification, channel=c)
            for c in channels(notification)
        ),
    ]
    with transaction.atomic():
        mine = Notification.objects.filter(pk=notification.pk, spread_at__isnull=True)
        if not mine.update(spread_at=timezone.now()):
            return 0
        NotificationDelivery.objects.bulk_create(told)
        if not told:
            notification.delete()
    return len(told)


def channels(notification: Notification) -> list[NotificationChannel]:
    """A call to act goes where those who may act are; an ending to all who were called."""
    said = notification.said
    keys = [said["permission"]] if notification.event in CALLS_TO_ACT else said["keys"]
    rows = NotificationChannel.objects.without_secrets().filter(enabled=True, keys__key__in=keys)
    return [row for row in rows.distinct() if notification.event in row.events]


def people(notification: Notification) -> Iterable[User]:
    """Those who asked to be told by mail, have an address, and whom it concerns."""
    if not mail.is_set_up():
        return
    wishes = NotificationPreference.objects.filter(mail=True, user__is_active=True)
    for wish in wishes.exclude(user__email="").select_related("user"):
        # Who believes to have voted is told even if they wanted to hear of nothing else.
        voted = wish.user_id in notification.said.get("voted_ids", ())
        wanted = voted or notification.event in wish.events
        if wanted and concerns(notification, wish.user):
            yield wish.user


def concerns(notification: Notification, user: Any) -> bool:
    """Whether ``user`` could act, was called to, or started the session; never their own deed."""
    interrupt, said = notification.interrupt, notification.said
    if said["by_id"] == user.pk or not user.has_perm(SEE):
        return False
    if interrupt.is_question:
        # Everybody who operates may answer; whose session it is hears of it.
        return bool(interrupt.session.started_by_id == user.pk)
    if notification.event in CALLS_TO_ACT:
        return standing_to_decide(user, interrupt).may
    started = interrupt.session.started_by_id == user.pk
    return started or any(holds(user, key) for key in said["keys"])
