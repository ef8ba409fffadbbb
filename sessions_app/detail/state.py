"""The State tab: what is known of a session beyond its Steps."""

from __future__ import annotations

import json
from dataclasses import dataclass

from sessions_app.flow.limits import Limits
from sessions_app.limits import Meter, limits_of, meters_of
from sessions_app.models import Session, Turn
from sessions_app.runs import Run, runs_of
from sessions_app.session_settings import effective


@dataclass(frozen=True)
class NextSettings:
    """What the next turn begins with; ``settings`` as JSON text."""

    revision: int
    model: str
    instructions: str
    settings: str


def next_settings(session: Session) -> NextSettings:
    found = effective(session.agent, session.settings)
    return NextSettings(
        session.settings_revision,
        found["model"],
        found["instructions"],
        json.dumps(found["settings"], ensure_ascii=False, indent=2),
    )


@dataclass(frozen=True)
class SessionState:
    """`settings` is the newest turn's, as JSON text, "" before the first model call of it."""

    turn: Turn | None
    settings: str
    labels: list[tuple[str, str]]
    limits: list[tuple[str, str]]
    meters: list[Meter]
    runs: list[Run]
    raw: str


def state_of_session(session: Session) -> SessionState:
    turn = session.turns.order_by("-number").first()
    settings = (
        json.dumps(turn.settings, ensure_ascii=False, indent=2) if turn and turn.settings else ""
    )
    return SessionState(
        turn=turn,
        settings=settings,
        labels=sorted((str(name), str(value)) for name, value in session.labels.items()),
        limits=_limits(limits_of(session)),
        meters=meters_of(session),
        runs=runs_of(session)[::-1],
        raw=json.dumps(_raw(session), ensure_ascii=False, indent=2, default=str),
    )


def _raw(session: Session) -> dict[str, object]:
    fields = [field.attname for field in session._meta.concrete_fields]
    return {name: getattr(session, name) for name in fields}


def _limits(limits: Limits) -> list[tuple[str, str]]:
    """The bounds that the session was started with, in words."""
    return [
        ("Model calls a turn", f"{limits.model_calls_per_turn}"),
        ("Parallel tool calls", f"{limits.parallel_calls}"),
        ("Message", f"{limits.message_bytes // 1024} KiB"),
        ("Tries of a model call", f"{limits.model_attempts}"),
        ("Tries of a tool that may be retried", f"{limits.tool_attempts}"),
        ("Model call at most", f"{limits.model_timeout:g} s"),
        ("New run after", f"{limits.continue_events:,} entries of history"),
    ]
