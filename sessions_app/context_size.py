"""How many tokens the model will read, estimated from rows before it is called."""

from __future__ import annotations

from typing import Any

from django.db.models.functions import Length

from sessions_app.models import Session, Turn

#: On the safe side for English and for JSON; a provider's own count is taken where there is one.
CHARACTERS_PER_TOKEN = 3


def tokens_in(characters: int) -> int:
    return characters // CHARACTERS_PER_TOKEN + 1


def context_tokens(session: Session, turn: Turn) -> int:
    """The context of the newest call and its answer, and what came since."""
    summary = session.newest_summary
    answered = session.steps.filter(type="RunModel", input_tokens__isnull=False)
    if summary is not None:
        # Those before it had read what it stands for.
        answered = answered.filter(ended_at__gt=summary.created_at)
    newest = (
        answered.order_by("-position")
        .values("step_id", "turn", "input_tokens", "output_tokens")
        .first()
    )
    if newest is None and summary is not None:
        return summary.tokens_after
    if newest is None:
        return tokens_in(len(turn.settings["instructions"]) + _said(session, turn))
    known = newest["input_tokens"] + (newest["output_tokens"] or 0)
    calls = session.calls.filter(model_step=newest["step_id"]).values_list(
        Length("words"), Length("result")
    )
    since = sum(words or result for words, result in calls)
    if newest["turn"] != turn.number:
        since += _said(session, turn)
    return int(known + tokens_in(since))


def _said(session: Session, turn: Turn) -> int:
    lengths: Any = session.messages.filter(turn=turn.number).values_list(Length("text"), flat=True)
    return sum(lengths)
