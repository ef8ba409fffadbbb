"""What a session may change of its agent's settings, and what comes of it.

A patch is a JSON object of ``model``, ``instructions`` and ``settings`` (an object, by name). null
takes a value back to the agent's. Names are the agent's own.
"""

import json
import math
from decimal import Decimal
from typing import Any

from dexweb.engine.errors import InvalidSettings
from sessions_app.agent_rules import model_errors, settings_errors
from sessions_app.models import Agent
from sessions_app.text import keepable

NAMES = ("model", "instructions", "settings")
#: What a session may give another value. All else, such as headers, the body, tools that the
#: provider runs, or another's conversation there, says where the agent's key and what was said go.
OWN_SETTINGS = frozenset(
    (
        *("max_tokens", "temperature", "top_p", "top_k", "seed", "stop_sequences", "timeout"),
        *("presence_penalty", "frequency_penalty", "parallel_tool_calls", "thinking"),
        *("openai_reasoning_effort", "openai_reasoning_summary", "openai_text_verbosity"),
        *("anthropic_thinking", "anthropic_effort", "google_thinking_config"),
        *("context_window", "script", "word_delay"),
    )
)
DEEPEST = 40


def plain(value: Any, depth: int = 0) -> Any:
    """``value`` as every database keeps it. Raises InvalidSettings for what none can."""
    if depth > DEEPEST:
        raise InvalidSettings(errors=[f"settings: this is nested more than {DEEPEST} deep."])
    if isinstance(value, str):
        return keepable(value)
    if isinstance(value, dict):
        return {keepable(str(name)): plain(one, depth + 1) for name, one in value.items()}
    if isinstance(value, list):
        return [plain(one, depth + 1) for one in value]
    number = float(value) if isinstance(value, Decimal) else value
    if isinstance(number, float) and not math.isfinite(number):
        raise InvalidSettings(errors=[f"settings: {value} is no number that can be used."])
    return number


def patched(changes: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """``changes`` with ``patch`` applied: what differs from the agent from then on."""
    merged = {**changes, **{name: patch[name] for name in patch if name != "settings"}}
    if "settings" in patch:
        own = patch["settings"]
        merged["settings"] = None if own is None else {**(changes.get("settings") or {}), **own}
    if merged.get("settings"):
        merged["settings"] = _without_none(merged["settings"])
    return {name: value for name, value in merged.items() if value not in (None, {})}


def effective(agent: Agent, changes: dict[str, Any]) -> dict[str, Any]:
    """The model, instructions and settings that a turn begins with.

    A model of another provider than the agent's has by now is left out: the key is not for it.
    """
    model = changes.get("model", agent.model)
    return {
        "model": model if _provider(model) == _provider(agent.model) else agent.model,
        "instructions": changes.get("instructions", agent.instructions),
        "settings": {**agent.settings, **changes.get("settings", {})},
    }


def patch_from_form(
    agent: Agent, changes: dict[str, Any], *, model: str, instructions: str, settings: str
) -> dict[str, Any]:
    """The patch that makes these, as a person typed them, the next turn's. Raises InvalidSettings."""
    try:
        wanted = json.loads(settings or "{}")
    except RecursionError:
        raise InvalidSettings(errors=["settings: this is nested too deeply."]) from None
    except ValueError as error:
        raise InvalidSettings(errors=[f"settings: this is no JSON: {error}."]) from error
    if not isinstance(wanted, dict):
        raise InvalidSettings(errors=["settings: write names and values, like {}."])
    left_out = sorted(set(agent.settings) - set(wanted))
    if left_out:
        words = "the agent sets this, and a session can only give it another value."
        raise InvalidSettings(errors=[f"settings.{name}: {words}" for name in left_out])
    patch: dict[str, Any] = {}
    for name, value in (("model", model.strip()), ("instructions", instructions)):
        own = getattr(agent, name)
        if value != changes.get(name, own):
            patch[name] = None if value == own else value
    before = changes.get("settings", {})
    after = {name: value for name, value in wanted.items() if agent.settings.get(name) != value}
    if after != before:
        patch["settings"] = {**dict.fromkeys(before), **after}
    if not patch:
        raise InvalidSettings(errors=["Nothing is different; change something first."])
    return patch


def patch_errors(agent: Agent, changes: dict[str, Any], patch: Any) -> list[str]:
    """What is wrong with ``patch`` on top of ``changes``; [] if it can be used."""
    if not isinstance(patch, dict) or not patch:
        return [f"Give at least one of {', '.join(NAMES)}."]
    errors = [
        f"{name}: a session cannot change this; it can change {', '.join(NAMES)}."
        for name in sorted(map(str, patch))
        if name not in NAMES
    ]
    errors += [
        f"{name}: write a text, or null for the agent's own."
        for name in ("model", "instructions")
        if not isinstance(patch.get(name), str | None)
    ]
    if not isinstance(patch.get("settings"), dict | None):
        errors.append("settings: write names and values, like {}, or null for the agent's own.")
    errors += [
        f"settings.{name}: a session cannot change this, only the agent."
        for name in sorted((patch.get("settings") or {}) if not errors else ())
        if name not in OWN_SETTINGS
    ]
    if errors:
        return errors[:20]
    after = patched(changes, patch)
    errors = _model_errors(agent, after.get("model", agent.model))
    result = effective(agent, after)
    return errors or settings_errors(result["model"], result["settings"])


def _model_errors(agent: Agent, model: str) -> list[str]:
    """The agent's key goes to the model's provider, so a session may not choose another one."""
    errors = [f"model: {error}" for error in model_errors(model)]
    provider = _provider(agent.model)
    if not errors and _provider(model) != provider:
        errors = [
            f"model: the agent's key is for {provider}, so choose one of its models ({provider}:…)."
        ]
    return errors


def _provider(model: str) -> str:
    return model.partition(":")[0]


def _without_none(settings: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if value is not None}
