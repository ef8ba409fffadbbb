"""What is asked about a model call, from rows: whose it is and what it may cost at most."""

from typing import Any

from django.db.models.functions import Length

from sessions_app.models import Session, Turn
from sessions_app.spend.limit import ModelCallAsked
from sessions_app.spend.prices import Usage, estimate

#: Assumed where the agent's settings give no ``max_tokens``.
OUTPUT_ASSUMED = 8_192
CHARACTERS_PER_TOKEN = 3


def asked(session: Session, turn: Turn, step_id: str, attempt: int) -> ModelCallAsked:
    """The call that this Step is about to make."""
    model = turn.settings["model"]
    return ModelCallAsked(
        session_id=session.pk,
        step_id=step_id,
        attempt=attempt,
        agent=session.agent_id,
        user=session.started_by_id,
        model=model,
        estimate=estimate(model, lambda: _expected(session, turn)),
        raised=session.spend_raised,
    )


def _expected(session: Session, turn: Turn) -> Usage:
    """The context of the newest call and its answer, what came since, and the longest answer."""
    most = turn.settings["settings"].get("max_tokens")
    output = most if isinstance(most, int) and most > 0 else OUTPUT_ASSUMED
    newest = (
        session.steps.filter(type="RunModel", input_tokens__isnull=False)
        .order_by("-position")
        .values("step_id", "turn", "input_tokens", "output_tokens")
        .first()
    )
    if newest is None:
        return Usage(_tokens(len(turn.settings["instructions"]) + _said(session, turn)), output)
    known = newest["input_tokens"] + (newest["output_tokens"] or 0)
    calls = session.calls.filter(model_step=newest["step_id"]).values_list(
        Length("words"), Length("result")
    )
    since = sum(words or result for words, result in calls)
    if newest["turn"] != turn.number:
        since += _said(session, turn)
    return Usage(known + _tokens(since), output)


def _said(session: Session, turn: Turn) -> int:
    lengths: Any = session.messages.filter(turn=turn.number).values_list(Length("text"), flat=True)
    return sum(lengths)


def _tokens(characters: int) -> int:
    return characters // CHARACTERS_PER_TOKEN + 1
