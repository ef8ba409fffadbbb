"""What a session changes of its agent's settings: merged, checked, and read from a form."""

import json
from typing import Any

import pytest

from dexweb.engine.errors import InvalidSettings
from sessions_app.models import Agent
from sessions_app.session_settings import effective, patch_errors, patch_from_form, patched

AGENT = Agent(
    name="desk", model="openai:gpt-5.2", instructions="Help.", settings={"temperature": 0.5}
)


@pytest.mark.parametrize(
    ("changes", "patch", "after"),
    [
        ({}, {"instructions": "Be brief."}, {"instructions": "Be brief."}),
        ({"instructions": "Be brief."}, {"instructions": None}, {}),
        ({"settings": {"a": 1}}, {"settings": {"b": 2}}, {"settings": {"a": 1, "b": 2}}),
        ({"settings": {"a": 1, "b": 2}}, {"settings": {"a": None}}, {"settings": {"b": 2}}),
        ({"settings": {"a": 1}}, {"settings": None}, {}),
    ],
    ids=["a value", "back to the agent's", "merged by name", "one name back", "all names back"],
)
def test_a_patch_goes_on_top_of_what_was_changed_before(
    changes: dict[str, Any], patch: dict[str, Any], after: dict[str, Any]
) -> None:
    assert patched(changes, patch) == after


def test_a_model_of_another_provider_than_the_agent_has_by_now_is_not_called_with_its_key() -> None:
    other = Agent(name="desk", model="anthropic:claude", instructions="", settings={})
    assert effective(other, {"model": "openai:gpt-5.2"})["model"] == "anthropic:claude"
    assert patch_errors(AGENT, {}, {"model": "openai:gpt-5.2-mini"}) == []
    assert "key" in patch_errors(AGENT, {}, {"model": "anthropic:claude"})[0]


def form(**typed: str) -> dict[str, Any]:
    own = {"model": AGENT.model, "instructions": AGENT.instructions}
    return patch_from_form(AGENT, {}, **{**own, "settings": json.dumps(AGENT.settings), **typed})


def test_a_form_patches_only_what_differs_from_the_agent() -> None:
    assert form(instructions="Be brief.") == {"instructions": "Be brief."}
    assert form(settings='{"temperature": 0.5, "top_p": 1}') == {"settings": {"top_p": 1}}


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ({"settings": "{"}, "no JSON"),
        ({"settings": "[]"}, "names and values"),
        ({"settings": "{}"}, "temperature"),
        ({}, "Nothing is different"),
    ],
    ids=["no JSON", "no object", "a name left out", "nothing new"],
)
def test_a_form_that_cannot_be_used_says_why(typed: dict[str, str], says: str) -> None:
    with pytest.raises(InvalidSettings, match=says):
        form(**typed)
