"""Sends what was queued: bounded, retried, and safe beside other workers' sweepers.

A delivery is claimed by compare-and-set on its tries; the claim also sets when it counts as lost, so
a worker that dies on the way takes nothing with it.
"""

import logging
from datetime import timedelta

from django.db.models import QuerySet
from django.utils import timezone

from approvals_app.models import Interrupt, Notification, NotificationChannel, NotificationDelivery
from approvals_app.models.notifications import CALLS_TO_ACT
from approvals_app.notify import mail, render, rules, webhooks
from approvals_app.notify.errors import AddressRefused, NotDelivered
from sessions_app.models.encrypted import WrongCredentialKey
from sessions_app.text import keepable

log = logging.getLogger(__name__)

BATCH = 20
MAX_TRIES = 8
LOST_AFTER = timedelta(minutes=2)
KEPT = timedelta(days=30)

State = NotificationDelivery.State


def prepare() -> list[str]:
    """Address what is news, and return the ids of deliveries to try now: `BATCH` at most."""
    unspread = Notification.objects.filter(spread_at__isnull=True)
    for notification in unspread.select_related("interrupt__session").order_by("id")[:BATCH]:
        try:
            rules.spread(notification)
        except Exception:
            # It stays for the next look; what others are to be told doesn't wait for it.
            log.exception("notification %s could not be addressed", notification.pk)
    return [
        str(pk) for pk in NotificationDelivery.objects.due().values_list("pk", flat=True)[:BATCH]
    ]


def sweep() -> int:
    """Everything that is due, one after the other. Returns how much was tried."""
    due = prepare()
    for delivery_id in due:
        deliver(delivery_id)
    return len(due)


def deliver(delivery_id: str) -> None:
    """Try one delivery, unless somebody else does; whatever comes of it is in its row."""
    delivery = _claim(delivery_id)
    if delivery is None:
        return
    try:
        if _is_late(delivery):
            _end(delivery, State.DROPPED, "The approval was over before this could be sent.")
            return
        _send(delivery)
    except AddressRefused as refusal:
        _end(delivery, State.FAILED, str(refusal))
    except (NotDelivered, WrongCredentialKey) as problem:
        _again(delivery, str(problem))
    except Exception as error:
        log.exception("a notification could not be sent")
        _again(delivery, f"It could not be sent: {type(error).__name__}")
    else:
        _end(delivery, State.SENT, "")


def back_off(tries: int) -> timedelta:
    """How long to wait after so many tries: 1, 2, 4 … 60 minutes."""
    return timedelta(minutes=min(2 ** (tries - 1), 60))


def forget_old() -> None:
    """Delete what is too old to be of use, some at a time."""
    old = Notification.objects.filter(at__lt=timezone.now() - KEPT).order_by("at")
    Notification.objects.filter(pk__in=list(old.values_list("pk", flat=True)[:500])).delete()


def _claim(delivery_id: str) -> NotificationDelivery | None:
    rows = NotificationDelivery.objects.select_related(
        "notification__interrupt__session__agent", "user"
    )
    delivery = rows.due().filter(pk=delivery_id).first()
    if delivery is None:
        return None
    if delivery.tries >= MAX_TRIES:
        _end(delivery, State.FAILED, "The worker ended during the last try.")
        return None
    same = NotificationDelivery.objects.due().filter(pk=delivery.pk, tries=delivery.tries)
    delivery.tries += 1
    claimed = same.order_by().update(tries=delivery.tries, next_try_at=timezone.now() + LOST_AFTER)
    return delivery if claimed else None


def _is_late(delivery: NotificationDelivery) -> bool:
    """A call to act on what is over. Programs are told all the same: they may be keeping count."""
    notification = delivery.notification
    channel = _channel(delivery)
    if channel is not None and channel.kind == NotificationChannel.Kind.WEBHOOK:
        return False
    over = notification.interrupt.state != Interrupt.State.PENDING
    return over and notification.event in CALLS_TO_ACT


def _channel(delivery: NotificationDelivery) -> NotificationChannel | None:
    """Without its secrets, so that a key that is gone stops only what needs it."""
    rows = NotificationChannel.objects.without_secrets()
    return rows.filter(pk=delivery.channel_id).first()


def _send(delivery: NotificationDelivery) -> None:
    number, notification = str(delivery.pk), delivery.notification
    if delivery.user is not None:
        if not delivery.user.is_active or not delivery.user.email:
            raise AddressRefused("The person has no address any more.")
        message = render.message(notification)
        mail.send(delivery.user.email, message.subject, render.mail_text(message), number)
        return
    channel = NotificationChannel.objects.get(pk=delivery.channel_id)
    if not channel.enabled:
        raise AddressRefused("The channel was disabled.")
    message = render.message(notification, with_arguments=channel.include_arguments)
    if channel.kind == NotificationChannel.Kind.MAIL:
        mail.send(channel.email, message.subject, render.mail_text(message), number)
    elif channel.kind == NotificationChannel.Kind.SLACK:
        webhooks.send_slack(channel.url, render.slack_text(message), number)
    else:
        content = render.content(notification, message, number)
        webhooks.send_signed(channel.url, channel.secret, content, number)


def _again(delivery: NotificationDelivery, problem: str) -> None:
    if delivery.tries >= MAX_TRIES:
        _end(delivery, State.FAILED, problem)
        return
    _ours(delivery).update(
        next_try_at=timezone.now() + back_off(delivery.tries), problem=_kept(problem)
    )


def _end(delivery: NotificationDelivery, state: str, problem: str) -> None:
    _ours(delivery).update(state=state, ended_at=timezone.now(), problem=_kept(problem))


def _ours(delivery: NotificationDelivery) -> QuerySet[NotificationDelivery]:
    """The row, as long as nobody has claimed it after us."""
    rows = NotificationDelivery.objects.filter(pk=delivery.pk, state=State.QUEUED)
    return rows.filter(tries=delivery.tries)


def _kept(problem: str) -> str:
    return render.marked(keepable(problem))[:500]
