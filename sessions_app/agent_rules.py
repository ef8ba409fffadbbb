"""What an agent's model and settings must be, for every surface that edits them."""

import difflib
from typing import Any

from sessions_app.models import Agent

SCRIPT_MODEL = "demo:script"
DEMO_MODELS = ("demo:refund-desk", SCRIPT_MODEL)
#: In tokens; less would be summarised before every call.
SMALLEST_WINDOW = 100
#: Of a window: far above any model, and within what a row can count.
LARGEST_WINDOW = 100_000_000
#: Of an answer, which a budget must reserve before the call.
LONGEST_ANSWER = 1_000_000
LONGEST_MODEL = 120


def settings_errors(model: str, settings: Any) -> list[str]:
    """What is wrong with an agent's settings, each after its place; [] if nothing is."""
    if not isinstance(settings, dict):
        return ["settings: write names and values, like {}."]
    window = settings.get("context_window", SMALLEST_WINDOW)
    if not _tokens(window, SMALLEST_WINDOW, LARGEST_WINDOW):
        return [
            f"settings.context_window: write the model's tokens, like 128000; at least {SMALLEST_WINDOW}."
        ]
    if not _tokens(settings.get("max_tokens", 1), 1, LONGEST_ANSWER):
        return ["settings.max_tokens: write the longest answer's tokens, like 4096."]
    if model != SCRIPT_MODEL:
        return []
    # Here, since it brings all of pydantic-ai, and every command and web process reads this module.
    from sessions_app.llm.script_model import validate_script

    if "script" not in settings:
        return [f"settings.script: {SCRIPT_MODEL} needs one: a list, an entry for each model call."]
    return [f"settings.script: {error}" for error in validate_script(settings["script"])]


def _tokens(count: Any, least: int, most: int) -> bool:
    return type(count) is int and least <= count <= most


def model_errors(model: str) -> list[str]:
    """Why this can be no model's name; [] if it can."""
    provider, _, name = model.partition(":")
    if not provider or not name:
        return ["Write provider:model, like openai:gpt-5.2."]
    if len(model) > LONGEST_MODEL or not model.isprintable():
        return [f"Write at most {LONGEST_MODEL} printable characters."]
    if provider == "demo" and model not in DEMO_MODELS:
        return [f"There is no such demo model; there are {' and '.join(DEMO_MODELS)}."]
    return []


def model_warning(model: str) -> str:
    """A doubt about a model that nobody here has heard of; "" when it is known.

    Only a doubt: providers bring new models faster than any list of them, and a server of one's
    own may call its models what it likes.
    """
    known = _known_models()
    if model in known or model in DEMO_MODELS:
        return ""
    near = difflib.get_close_matches(model, known, 1, 0.8)
    hint = f" Did you mean {near[0]}?" if near else ""
    return f"“{model}” is not among the models known here; its first call will show.{hint}"


def _known_models() -> frozenset[str]:
    # Takes seconds to import, which only who edits an agent should wait for.
    from typing import get_args

    from pydantic_ai.models import KnownModelName

    return frozenset(get_args(getattr(KnownModelName, "__value__", KnownModelName)))


def unknown_agents(names: list[str]) -> list[str]:
    """Those of ``names`` that no agent has."""
    known = set(Agent.objects.filter(name__in=names).values_list("name", flat=True))
    return [name for name in names if name not in known]
