"""What is asked about a model call, from rows: whose it is and what it may cost at most."""

from sessions_app.context_size import context_tokens
from sessions_app.models import ModelPrice, Session, Turn
from sessions_app.spend.limit import ModelCallAsked
from sessions_app.spend.prices import Usage, estimate

#: Assumed where the agent's settings give no ``max_tokens``.
OUTPUT_ASSUMED = 8_192


def asked(
    session: Session, turn: Turn, step_id: str, attempt: int, price: ModelPrice | None
) -> ModelCallAsked:
    """The call that this Step is about to make; ``price`` is the model's own, where it has one."""
    model = turn.settings["model"]
    return ModelCallAsked(
        session_id=session.pk,
        step_id=step_id,
        attempt=attempt,
        agent=session.agent_id,
        user=session.started_by_id,
        model=model,
        estimate=estimate(model, price, lambda: _expected(session, turn)),
        raised=session.spend_raised,
    )


def _expected(session: Session, turn: Turn) -> Usage:
    """The context of the newest call and its answer, what came since, and the longest answer."""
    most = turn.settings["settings"].get("max_tokens")
    output = most if isinstance(most, int) and most > 0 else OUTPUT_ASSUMED
    return Usage(context_tokens(session, turn), output)
