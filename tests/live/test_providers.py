"""A real provider's protocol, with a key from a Credential, in a whole session."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection

from sessions_app.models import Agent, Credential, Session
from tests.live.conftest import Live, engine_holds
from tests.sessions_app.llm.provider import Provider, chat, chat_call

pytestmark = pytest.mark.usefixtures("standing_worker")

KEY = "sk-live-0123456789abcdefghij-THE-END"
SAID = "Order A-1042 came late, says Ann."


@pytest.fixture
def provider() -> Iterator[Provider]:
    provider = Provider()
    yield provider
    provider.close()


def desk_on(live: Live, provider: Provider) -> None:
    live.agent([{"text": "unused"}], pool="standing")
    credential = Credential.objects.create(
        name="main", value=KEY, base_url=f"{provider.address}/v1"
    )
    Agent.objects.update(model="openai:gpt-4o", credential=credential, settings={})


def test_the_key_of_a_credential_reaches_its_provider_and_nothing_else(
    live: Live, provider: Provider
) -> None:
    desk_on(live, provider)
    provider.streams(*chat({"content": "Hello "}, {"content": "there."}))
    session = live.idle(live.start(live.person("ann"), message=SAID))

    step = session.steps.get(step_id="RunModel-1")
    assert step.text == "Hello there."
    assert (step.input_tokens, step.output_tokens) == (1000, 200)
    assert session.spend == step.cost > Decimal(0)
    assert not session.spend_unknown
    assert provider.requests[0]["headers"]["authorization"] == f"Bearer {KEY}"
    assert provider.requests[0]["json"]["stream"] is True
    assert_kept_secret(session)


def test_a_provider_that_quotes_the_key_in_its_error_does_not_spread_it(
    live: Live, provider: Provider
) -> None:
    desk_on(live, provider)
    provider.fails(401, {"error": {"message": f"Incorrect API key provided: {KEY}"}})
    session = live.idle(live.start(live.person("ann"), message=SAID))

    turn = session.turns.get()
    assert turn.state == "failed"
    assert "401" in turn.detail or "key" in turn.detail
    assert session.steps.get(step_id="RunModel-1").attempt == 1
    assert_kept_secret(session)


def test_a_call_that_a_provider_asks_for_is_run_and_its_result_goes_back(
    live: Live, provider: Provider
) -> None:
    desk_on(live, provider)
    deltas = chat_call(0, "call_1", "shop__lookup_order", '{"order_id": ', '"A-1042"}')
    provider.streams(*chat(*deltas, finish="tool_calls"))
    session = live.start(live.person("ann"), message=SAID)
    live.begun(session, "lookup_order", "lookups")
    provider.streams(*chat({"content": "It was late."}))
    live.idle(session)

    assert live.call(session, "lookup_order").outcome == "completed"
    roles = [message["role"] for message in provider.requests[-1]["json"]["messages"]]
    assert roles[-2:] == ["assistant", "tool"]


def assert_kept_secret(session: Session) -> None:
    """Not in the engine's history, which has what was said, and in the database only encrypted."""
    assert engine_holds(session, SAID)
    assert not engine_holds(session, KEY)
    assert KEY[-12:] not in "".join(
        path.read_text(errors="ignore") for path in Path(settings.DEXWEB_VAR).glob("*.log")
    )
    if connection.vendor == "sqlite":
        with closing(sqlite3.connect(connection.settings_dict["NAME"])) as database:
            assert KEY not in "\n".join(database.iterdump())
