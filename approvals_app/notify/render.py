"""Notifications in words: one content for mail, chats and programs, with nothing hidden in it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.template.loader import render_to_string
from django.urls import get_script_prefix, reverse
from django.utils import timezone

from approvals_app.deception import segments, suspicious
from approvals_app.models import Interrupt, Notification, NotificationEvent
from approvals_app.questions import first_words
from sessions_app import arguments
from sessions_app.models import Credential
from sessions_app.models.encrypted import WrongCredentialKey
from sessions_app.tools.redaction import SHORTEST, redact_value

MOST_IN_LINE = 200
MOST_ARGUMENTS = 2500
WARNING = "Careful: it holds characters that hide, turn the text around or imitate others."

Event = NotificationEvent


@dataclass(frozen=True)
class Message:
    """What is told. All texts are marked and of one line each, but ``arguments`` (JSON)."""

    subject: str
    headline: str
    facts: list[tuple[str, str]]
    link: str
    suspicious: bool
    arguments: str = ""
    #: The same as a value; None when they are not to be sent.
    args: dict[str, Any] | None = None


def message(notification: Notification, *, with_arguments: bool = False) -> Message:
    """``notification`` in words. Its subject is safe in a header: one line, no control character."""
    interrupt, said = notification.interrupt, notification.said
    session = interrupt.session
    strange = [interrupt.tool, session.title, interrupt.args]
    args = _args(interrupt) if with_arguments else None
    voted = ", ".join(said.get("voted", ()))
    headline = _headline(notification)
    return Message(
        subject=f"[Dexweb] {headline}",
        headline=headline,
        facts=[
            ("Tool", line(interrupt.tool)),
            ("Agent", line(session.agent.name)),
            ("Session", line(session.title)),
            *_terms(interrupt, said),
            *([("Votes that no longer count", line(voted))] if voted else []),
        ],
        link=link(interrupt),
        suspicious=any(suspicious(text) for text in strange),
        arguments="" if args is None else block(arguments.as_text(args), MOST_ARGUMENTS),
        args=args,
    )


def _terms(interrupt: Interrupt, said: dict[str, Any]) -> list[tuple[str, str]]:
    """Under which an approval was asked for; a question has none, but words."""
    if interrupt.is_question:
        return [("Asks", line(first_words(interrupt.args)))]
    return [
        ("Risk", line(interrupt.risk)),
        ("Permission", line(said["permission"])),
        ("Deadline", moment(datetime.fromisoformat(said["deadline"]))),
    ]


def mail_text(told: Message) -> str:
    return render_to_string(
        "notifications/mail.txt",
        {"told": told, "warning": WARNING, "settings": page("notification-preferences")},
    )


def slack_text(told: Message) -> str:
    """Text from outside stands in code spans, where no chat makes links or calls people by it."""
    lines = [_code(told.headline)]
    lines += [f"{name}: {_code(value)}" for name, value in told.facts]
    if told.suspicious:
        lines.append(WARNING)
    if told.arguments:
        lines.append(f"```{_escaped(told.arguments.replace('`', 'ˋ'))}```")
    return "\n".join([*lines, f"Open it in Dexweb: {told.link}"])


def content(notification: Notification, told: Message, delivery_id: str) -> dict[str, Any]:
    """The body of a signed webhook. ``approval.args`` is there only where the channel wants it."""
    interrupt, said = notification.interrupt, notification.said
    approval = {
        "id": interrupt.pk,
        "session": interrupt.session_id,
        "session_title": line(interrupt.session.title),
        "agent": interrupt.session.agent.name,
        "tool": line(interrupt.tool),
        "risk": interrupt.risk,
        "permission": said["permission"],
        "state": said["state"],
        "revision": said["revision"],
        "level": said["level"],
        "deadline": said["deadline"],
        "suspicious": told.suspicious,
    }
    if told.args is not None:
        approval["args"] = told.args
    return {
        "delivery": delivery_id,
        "event": notification.event,
        "at": notification.at.isoformat(),
        "text": told.headline,
        "by": line(said["by"]),
        "approval": approval,
        "url": told.link,
    }


def _headline(notification: Notification) -> str:
    said, tool = notification.said, line(notification.interrupt.tool)
    if notification.interrupt.is_question:
        return _question_headline(notification)
    if notification.event == Event.ASK:
        return f"Approval asked for: {tool}"
    if notification.event == Event.REMIND:
        return f"Still waits for approval: {tool}"
    if notification.event == Event.ESCALATE:
        return f"Nobody answered; now {line(said['permission'])} is asked: {tool}"
    if notification.event == Event.EDIT:
        return f"The arguments were edited by {line(said['by'])}, vote again: {tool}"
    if notification.event == Event.EXPIRE:
        return f"Expired, nobody decided in time: {tool}"
    if notification.event == Event.DECIDE:
        verdict = said["state"].capitalize()
        by = f"by {line(said['by'])}" if said["by"] else "by its policy, since nobody answered"
        return f"{verdict} {by}: {tool}"
    return f"{said['state'].capitalize()}, no decision is needed: {tool}"


def _question_headline(notification: Notification) -> str:
    said, agent = notification.said, line(notification.interrupt.session.agent.name)
    if notification.event == Event.ASK:
        return f"{agent} asks you a question"
    if said["state"] == Interrupt.State.ANSWERED:
        return f"{line(said['by'])} answered the question of {agent}"
    return f"The question of {agent} needs no answer any more"


def link(interrupt: Interrupt) -> str:
    """The approval's page, where a person signs in and decides; opening it decides nothing."""
    return page("approval", interrupt.pk)


def page(name: str, *args: str) -> str:
    """The whole address of a page. The public address holds the path prefix, if there is one."""
    # What `reverse` puts before a path differs from thread to thread.
    path = reverse(name, args=args).removeprefix(get_script_prefix())
    return f"{settings.DEXWEB_PUBLIC_URL.rstrip('/')}/{path}"


def moment(at: datetime) -> str:
    """A time with its zone in words, in the zone that Dexweb shows times in."""
    local = timezone.localtime(at)
    return f"{local:%Y-%m-%d %H:%M} {local.tzname()} (UTC{local:%z})"


def line(text: str) -> str:
    """``text`` on one line, marked; a long one says that it goes on."""
    return block(text, MOST_IN_LINE).replace("\n", " ⏎ ").replace("\t", " ")


def block(text: str, most: int) -> str:
    """``text``, marked; what is over ``most`` characters is left out, and that is said."""
    if len(text) <= most:
        return marked(text)
    return f"{marked(text[:most])} … (cut: {len(text) - most} more characters)"


def marked(text: str) -> str:
    """``text`` with every character that hides, turns or imitates named in brackets."""
    return "".join(_segment(segment.text, segment.mark, segment.name) for segment in segments(text))


def _segment(text: str, mark: str, name: str) -> str:
    if mark == "":
        return text
    return f"{text}[{name}]" if mark == "lookalike" else f"[{name}]"


def _args(interrupt: Interrupt) -> dict[str, Any] | None:
    """The arguments, without any value that is a credential's; None if that cannot be known."""
    try:
        secrets = [row.value for row in Credential.objects.all()]
        args = arguments.parse(interrupt.args)
    except (WrongCredentialKey, ValueError):
        return None
    cleaned: dict[str, Any] = redact_value(args, [s for s in secrets if len(s) >= SHORTEST])
    return cleaned


def _code(text: str) -> str:
    return f"`{_escaped(text.replace('`', 'ˋ'))}`"


def _escaped(text: str) -> str:
    """As Slack asks for: else <…> would be a link or call everybody."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
