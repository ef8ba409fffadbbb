"""Messages by e-mail, through Django's backends."""

from email.utils import parseaddr
from smtplib import SMTPException

from django.conf import settings
from django.core.mail import EmailMessage

from approvals_app.notify.errors import NotDelivered

NO_MAIL = "django.core.mail.backends.dummy.EmailBackend"


def is_set_up() -> bool:
    """Whether this Dexweb can send mail at all."""
    return bool(settings.EMAIL_BACKEND != NO_MAIL)


def send(to: str, subject: str, text: str, delivery_id: str) -> None:
    """Hand the mail to the server; its Message-ID is the delivery's, so a second copy is known as one."""
    if not is_set_up():
        raise NotDelivered("No mail server is set up (DEXWEB_EMAIL_HOST).")
    headers = {
        "Message-ID": f"<{delivery_id}@{_domain()}>",
        "Auto-Submitted": "auto-generated",
    }
    try:
        EmailMessage(subject, text, to=[to], headers=headers).send()
    except (SMTPException, OSError) as error:
        raise NotDelivered(f"The mail server did not take it: {error}") from error


def _domain() -> str:
    """The part after the @ of the sender's address, without the name around it."""
    return parseaddr(settings.DEFAULT_FROM_EMAIL)[1].rpartition("@")[2] or "dexweb.invalid"
