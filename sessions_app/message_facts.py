"""The Flow's facts about messages and settings, as rows and events; called by `projection`."""

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any

from sessions_app.flow import fact
from sessions_app.models import Message, Session
from sessions_app.session_settings import patched
from sessions_app.standing import user_of
from sessions_app.stream.append import append


def _queued(session: Session, body: fact.MessageQueued, at: datetime) -> None:
    message = body.message
    session.known_messages[message.message_id] = Message.objects.create(
        session=session,
        message_id=message.message_id,
        text=message.text,
        author_id=user_of(message.author),
        author_name=message.author.name,
        created_at=at,
    )
    if session.phase == Session.Phase.IDLE:
        # Its turn begins at once, but is told of only when a worker has taken the first Step.
        session.phase = Session.Phase.THINKING
    payload = {"text": message.text, "author": message.author.name}
    _tell(session, "message.queued", message.message_id, at, **payload)


def _edited(session: Session, body: fact.MessageEdited, at: datetime) -> None:
    message = session.messages.filter(message_id=body.message_id)
    # What an earlier editor wrote may still stand in it, and only the last one is kept in its row.
    session.behind.add(*message.filter(edited_by__isnull=False).values_list("edited_by", flat=True))
    message.update(
        text=body.text,
        edited_by_id=user_of(body.by),
        edited_by_name=body.by.name,
        edited_at=at,
    )
    _tell(session, "message.edited", body.message_id, at, text=body.text, by=body.by.name)


def _deleted(session: Session, body: fact.MessageDeleted, at: datetime) -> None:
    session.messages.filter(message_id=body.message_id).update(state=Message.State.DELETED)
    if session.phase == Session.Phase.THINKING and not _has_turn(session):
        session.phase = Session.Phase.IDLE
    _tell(session, "message.deleted", body.message_id, at, by=body.by.name)


def _has_turn(session: Session) -> bool:
    """Whether a turn runs, or a message waits that will begin one."""
    waiting = session.messages.filter(state__in=[Message.State.QUEUED, Message.State.STEERED])
    return session.turns.filter(state="running").exists() or waiting.exists()


def _steered(session: Session, body: fact.MessageSteered, at: datetime) -> None:
    session.messages.filter(message_id=body.message_id).update(state=Message.State.STEERED)
    _tell(session, "message.steered", body.message_id, at, by=body.by.name)


def _taken_in(session: Session, body: fact.MessageTakenIn, at: datetime) -> None:
    consumed(session, body.message_id, body.turn, body.step_id, at)


def consumed(session: Session, message_id: str, turn: int, before_step: str, at: datetime) -> None:
    """A turn reads the message: from its beginning, or from ``before_step`` on if it was steered in."""
    message = session.known_messages.get(message_id)
    message = message or session.messages.get(message_id=message_id)
    message.state, message.turn = Message.State.CONSUMED, turn
    message.before_step = before_step
    message.save(update_fields=["state", "turn", "before_step"])
    payload = {"turn": turn, "author": message.author_name}
    _tell(session, "message.consumed", message_id, at, before_step, **payload)


def _settings_changed(session: Session, body: fact.SettingsChanged, at: datetime) -> None:
    patch = json.loads(body.patch)
    session.settings = patched(session.settings, patch)
    session.settings_revision = body.revision
    by = user_of(body.by)
    if by is not None:
        session.behind.add(by)
    payload = {"revision": body.revision, "patch": patch, "by": body.by.name}
    append(session, "settings.changed", payload, at)


def _tell(
    session: Session, type: str, message_id: str, at: datetime, step_id: str = "", **payload: object
) -> None:
    append(session, type, {"message_id": message_id, **payload}, at, step_id=step_id)


MESSAGE_HANDLERS: dict[type, Callable[[Session, Any, datetime], None]] = {
    fact.MessageQueued: _queued,
    fact.MessageEdited: _edited,
    fact.MessageDeleted: _deleted,
    fact.MessageSteered: _steered,
    fact.MessageTakenIn: _taken_in,
    fact.SettingsChanged: _settings_changed,
}
