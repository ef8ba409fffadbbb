"""What a session's settings may hold, whoever sends them and however."""

from typing import Any

import pytest
from django.test import Client

from dexweb.engine.errors import InvalidSettings, TooLarge
from sessions_app import actions
from sessions_app.models import Agent
from sessions_app.session_settings import patch_errors
from tests.sessions_app.api import build

DESK = Agent(name="desk", model="openai:gpt-5.2", settings={"extra_headers": {"X-Team": "7"}})


@pytest.mark.parametrize(
    "given",
    [
        {"extra_headers": {"Host": "elsewhere.example"}},
        {"extra_body": {"model": "a-dear-one"}},
        {"openai_native_tools": [{"type": "mcp", "server_url": "https://elsewhere.example"}]},
        {"openai_previous_response_id": "resp_of_another_session"},
        {"anthropic_container": "one-of-another-session"},
    ],
    ids=lambda given: next(iter(given)),
)
def test_a_session_cannot_change_where_a_model_call_goes_or_what_the_provider_runs(
    given: dict[str, Any],
) -> None:
    [error] = patch_errors(DESK, {}, {"settings": given})
    assert "only the agent" in error


@pytest.mark.parametrize(
    "patch",
    [
        {"settings": {"temperature": float("nan")}},
        {"settings": {"temperature": float("inf")}},
        {"settings": {"context_window": 10**400}},
        {"settings": {"max_tokens": 10**30}},
        {"settings": {"max_tokens": -1}},
        {"model": f"demo:{'x' * 500}"},
        {"model": "openai:gpt\x07"},
    ],
    ids=["nan", "inf", "window", "answer", "negative", "long model", "odd model"],
)
def test_what_no_row_could_keep_is_refused_before_the_session_takes_it(
    patch: dict[str, Any],
) -> None:
    agent = Agent(name="desk", model="openai:gpt-5.2")
    with pytest.raises(InvalidSettings):
        actions._checked_patch(agent, {}, patch)


def test_a_nul_is_replaced_wherever_it_stands() -> None:
    agent = Agent(name="desk", model="demo:refund-desk")
    patch = {"instructions": "a\x00b", "settings": {"stop_sequences": ["a\x00b"]}}
    assert "\\u0000" not in actions._checked_patch(agent, {}, patch)


def test_many_small_changes_do_not_add_up_to_more_than_one_may_hold() -> None:
    agent = Agent(name="desk", model="demo:refund-desk")
    words = "w" * 40_000
    with pytest.raises(TooLarge):
        actions._checked_patch(agent, {"instructions": words}, {"settings": {"thinking": words}})


@pytest.mark.parametrize("revision", ["²", "9" * 5000, "", "-1"], ids=["²", "long", "none", "-1"])
def test_a_damaged_revision_and_settings_nested_without_end_are_told_on_the_form(
    revision: str, db: None
) -> None:
    client, session = Client(raise_request_exception=False), build.session()
    client.force_login(build.person("olaf", *build.OPERATE))
    form = {"model": "demo:refund-desk", "instructions": "New.", "settings": "{}"}
    deep = '{"x":' + "[" * 100_000 + "]" * 100_000 + "}"
    address = f"/sessions/{session.pk}/settings/"
    assert client.post(address, {**form, "revision": revision}).status_code == 400
    assert client.post(address, {**form, "revision": "0", "settings": deep}).status_code == 400
