"""How many tokens a model reads at once."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

#: Of the offline models, unless the setting ``context_window`` says another.
DEMO_WINDOW = 128_000


def window_of(model: str, settings: Mapping[str, Any]) -> int | None:
    """Tokens: the setting ``context_window`` if there is one, else what is known of the model."""
    own = settings.get("context_window")
    return own if isinstance(own, int) and own > 0 else _known(model)


@lru_cache(maxsize=256)
def _known(model: str) -> int | None:
    if model.startswith("demo:"):
        return DEMO_WINDOW
    # Takes a while to import, and the offline models do without.
    from pydantic_ai.exceptions import UserError
    from pydantic_ai.models import infer_model_profile

    try:
        return (infer_model_profile(model) or {}).get("context_window")
    except (UserError, ImportError, ValueError, LookupError):
        return None
