"""The bounds of sessions: what this installation sets, and what one session was started with."""

from dataclasses import asdict, dataclass, fields, replace

from django.conf import settings

from sessions_app.flow.limits import Limits
from sessions_app.models import Session


def installed() -> Limits:
    """What a session gets where its agent says nothing."""
    return replace(
        Limits(),
        heartbeat=settings.DEXWEB_HEARTBEAT_TIMEOUT,
        message_bytes=settings.DEXWEB_LIMIT_MESSAGE,
        parallel_calls=settings.DEXWEB_LIMIT_PARALLEL_CALLS,
        model_calls_per_turn=settings.DEXWEB_LIMIT_MODEL_CALLS,
        context_threshold=settings.DEXWEB_LIMIT_CONTEXT,
        continue_events=settings.DEXWEB_LIMIT_HISTORY_EVENTS,
        continue_bytes=settings.DEXWEB_LIMIT_HISTORY_BYTES,
    )


def limits_of(session: Session) -> Limits:
    """What ``session`` was started with; of one that began before that was kept, what holds now."""
    known = {field.name for field in fields(Limits)}
    kept = {name: value for name, value in session.limits.items() if name in known}
    return Limits(**{**asdict(installed()), **kept})


@dataclass(frozen=True)
class Meter:
    """How much of a bound is used; ``limit`` is None where nobody knows it."""

    key: str
    name: str
    used: int
    limit: int | None
    hint: str

    @property
    def near(self) -> bool:
        return self.limit is not None and self.used >= 0.8 * self.limit


def meters_of(session: Session) -> list[Meter]:
    """What of a session comes up against a bound, in the order in which people meet it."""
    limits = limits_of(session)
    window = session.context_window
    over = int(window * limits.context_threshold) if window else None
    return [
        Meter(
            "context_tokens",
            "Context",
            session.context_tokens,
            window,
            f"Tokens that the model read and wrote last; over {over:,}, older turns are summarised"
            if over
            else "Tokens that the model read and wrote last; how many it can read is not known",
        ),
        Meter(
            "model_calls",
            "Calls this turn",
            session.turn_model_calls,
            limits.model_calls_per_turn,
            "Model calls of the newest turn; it ends at the limit",
        ),
        Meter(
            "history_events",
            "History",
            session.history_events,
            limits.continue_events,
            "Entries of the engine's history; at the limit, after the turn, a new run goes on",
        ),
        Meter(
            "history_bytes",
            "History size",
            session.history_bytes,
            limits.continue_bytes,
            "Bytes of the engine's history; at the limit, after the turn, a new run goes on",
        ),
    ]
