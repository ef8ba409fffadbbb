"""The audit log in words: what was done, to what, and what it was before and after."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.urls import reverse
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from approvals_app.audit import SURFACES
from approvals_app.models import AuditEntry

#: What each action is called. One that is not here, from another version, is shown by its own name.
ACTIONS = {
    "decision.approve": "approved",
    "decision.reject": "rejected",
    "decision.refused": "was refused a decision",
    "hold.taken": "took a hold",
    "hold.taken_over": "took a hold over",
    "hold.released": "let go of a hold",
    "deadline.extended": "moved the deadline",
    "question.answered": "answered a question",
    "wait.skipped": "skipped a wait",
    "delegation.given": "handed over a permission",
    "delegation.revoked": "took a permission back",
    "delegation.refused": "was refused a delegation",
    "session.started": "started a session",
    "session.stopped": "stopped a session",
    "session.settings_changed": "changed a session’s settings",
    "turn.canceled": "canceled a turn",
    "spendbudget.created": "made a budget",
    "spendbudget.changed": "changed a budget",
    "spendbudget.deleted": "deleted a budget",
    "modelprice.created": "set a model’s price",
    "modelprice.changed": "changed a model’s price",
    "modelprice.deleted": "deleted a model’s price",
    "spend.raised": "raised what a session may spend",
    "message.edited": "edited a waiting message",
    "message.deleted": "withdrew a waiting message",
    "message.steered": "steered a message in",
    "agent.created": "made an agent",
    "agent.changed": "changed an agent",
    "agent.deleted": "deleted an agent",
    "connection.created": "made a connection",
    "connection.changed": "changed a connection",
    "connection.deleted": "deleted a connection",
    "credential.created": "stored a credential",
    "credential.changed": "changed a credential",
    "credential.deleted": "deleted a credential",
    "permissionkey.created": "made a permission key",
    "permissionkey.changed": "changed who holds a permission key",
    "permissionkey.deleted": "deleted a permission key",
    "user.created": "made a user",
    "user.changed": "changed a user",
    "user.password_changed": "set a user’s password",
    "group.created": "made a group",
    "group.changed": "changed a group",
    "group.deleted": "deleted a group",
    "notificationchannel.created": "made a notification channel",
    "notificationchannel.changed": "changed a notification channel",
    "notificationchannel.deleted": "deleted a notification channel",
    "notificationpreference.changed": "changed what they are told by mail",
    "signin.paused": "paused signing in",
    "token.shown": "was shown an API token",
    "token.made": "made an API token",
    "audit.exported": "exported the audit log",
    "audit.pruned": "removed old entries of the audit log",
}

#: The first words of actions, for the filter.
AREAS = {
    "decision": "Decisions",
    "hold": "Holds",
    "deadline": "Deadlines",
    "question": "Questions",
    "wait": "Waits",
    "delegation": "Delegations",
    "session": "Sessions",
    "turn": "Turns",
    "message": "Messages",
    "spend": "Spend of sessions",
    "spendbudget": "Budgets",
    "modelprice": "Prices of models",
    "agent": "Agents and policies",
    "connection": "Connections",
    "credential": "Credentials",
    "permissionkey": "Permission keys",
    "user": "Users",
    "group": "Groups",
    "notificationchannel": "Notification channels",
    "notificationpreference": "People’s own notifications",
    "signin": "Signing in",
    "token": "API tokens",
    "audit": "This log",
}
NOTHING = "(nothing)"


def choices() -> list[tuple[str, str, list[tuple[str, str]]]]:
    """For the filter: each area, its words, and the actions in it with theirs."""
    return [
        (area, words, [each for each in ACTIONS.items() if each[0].startswith(f"{area}.")])
        for area, words in AREAS.items()
    ]


@dataclass(frozen=True)
class Change:
    """One thing that the entry says; ``before`` is None where it tells of no change."""

    name: str
    before: str | None
    after: str


@dataclass(frozen=True)
class Line:
    """An entry as the page shows it."""

    entry: AuditEntry
    action: str
    via: str
    changes: list[Change]
    subject_url: str


def line(entry: AuditEntry) -> Line:
    return Line(
        entry=entry,
        action=ACTIONS.get(entry.action, entry.action),
        via=SURFACES.get(entry.via, entry.via),
        changes=list(_changes(entry.detail)),
        subject_url=_address(entry.subject),
    )


def _changes(detail: dict[str, Any]) -> Iterator[Change]:
    rest = dict(detail)
    if "before" in rest and "after" in rest:
        yield Change("", _text(rest.pop("before")), _text(rest.pop("after")))
    changed = rest.pop("changes", {})
    for name, values in changed.items():
        # As it is written: a policy's pattern is part of it.
        yield Change(name, _text(values.get("before")), _text(values.get("after")))
    for name, value in rest.items():
        if value not in ("", None, False, [], {}):
            yield Change(_label(name), None, _text(value))


def _label(name: str) -> str:
    return name.replace("_", " ")


def _text(value: Any) -> str:
    if value in ("", None, [], {}):
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    if isinstance(value, dict):
        return "; ".join(f"{_label(str(name))}: {_text(item)}" for name, item in value.items())
    return _moment(str(value))


def _moment(text: str) -> str:
    """A moment to the second, its zone named; another text as it is."""
    try:
        moment = parse_datetime(text)
        if moment is None or moment.tzinfo is None:
            return text
        return timezone.localtime(moment).strftime("%Y-%m-%d %H:%M:%S %Z")
    except (ValueError, OverflowError):
        # What somebody typed, like a name, may look like a moment that no calendar has.
        return text


def _address(subject: str) -> str:
    kind, _, name = subject.partition(":")
    try:
        if kind == "interrupt":
            return reverse("approval", args=[name])
        if kind == "session":
            return reverse("session", args=[name])
    except ValueError:
        pass
    return ""
