"""Requests that no page of ours sends are refused in words, and change nothing for anybody else."""

import base64
import json
import uuid
from unittest.mock import AsyncMock, patch

import pytest
from django.urls import reverse

from dexweb.engine.errors import TooLarge
from sessions_app import actions
from sessions_app.flow.state import RpcAnswer
from tests.sessions_app.api import build

pytestmark = pytest.mark.django_db


@pytest.fixture
def asked():
    """What reaches the engine, by the name of the RPC."""
    with patch("sessions_app.actions.SessionEngine") as engine:
        for name in ("send_message", "cancel_turn", "stop"):
            setattr(engine.return_value, name, AsyncMock(return_value=RpcAnswer("m-1", "now")))
        yield engine.return_value


def test_one_persons_key_is_never_anothers_request(asked):
    """The Flow knows requests by id: under the first one's, a second person's would be lost."""
    session = build.session()
    key = str(uuid.uuid4())
    for name in ("ann", "bob"):
        client = build.client_of(build.person(name, *build.OPERATE))
        path = f"/api/v1/sessions/{session.pk}/messages/"
        answer = client.post(path, {"text": f"from {name}"}, headers={"Idempotency-Key": key})
        assert answer.status_code == 202
    first, second = (call.args[1].request_id for call in asked.send_message.await_args_list)
    assert first != second


@pytest.mark.parametrize("odd", ["x" * 5000, "a\0b", "not a uuid", "é" * 40])
def test_a_page_takes_no_request_id_but_its_own_kind(client, asked, odd):
    client.force_login(build.person("ann", *build.OPERATE))
    path = reverse("session-message", args=[build.session().pk])
    client.post(path, {"text": "hello", "request_id": odd})
    uuid.UUID(asked.send_message.await_args.args[1].request_id)


@pytest.mark.parametrize(
    "act",
    [
        lambda user, pk, reason: actions.cancel_turn(user, pk, reason, "r-1"),
        lambda user, pk, reason: actions.stop(user, pk, "cancel", reason, "r-1"),
        lambda user, pk, reason: actions.stop(user, pk, "terminate", reason, "r-1"),
    ],
)
def test_a_reason_is_bounded_whoever_sends_it(asked, act):
    user, session = build.person("ann", *build.OPERATE), build.session()
    with pytest.raises(TooLarge):
        act(user, session.pk, "why " * 100_000)


@pytest.mark.parametrize("moment", ["9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59"])
def test_a_cursor_at_the_end_of_time_is_no_cursor(client, moment):
    text = json.dumps([False, moment, "a"])
    cursor = base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
    user = build.person("ann", *build.LOOK)
    client.force_login(user)
    assert client.get("/sessions/", {"cursor": cursor}).status_code == 200
    answer = build.client_of(user).get("/api/v1/sessions/", {"cursor": cursor})
    assert answer.status_code == 400


def test_every_address_says_what_it_takes():
    session = build.session()
    answer = build.client_of(build.person("ann", *build.LOOK)).options(
        f"/api/v1/sessions/{session.pk}/settings/"
    )
    assert answer.status_code == 200


@pytest.mark.parametrize("asking", ["shop__?ook", "shop__l?ok"])
def test_of_policies_that_fit_a_tool_alike_the_stricter_counts(asking):
    agent = build.agent()
    for pattern in ("shop__?ook", "shop__l?ok"):
        agent.tools.create(pattern=pattern, effect="read", needs_approval=pattern == asking)
    assert agent.policy_for("shop__look").needs_approval


@pytest.mark.parametrize("number", ["1e9999999999999999999", "1e-9999999999999999999"])
def test_a_number_beyond_all_bounds_is_refused_in_words(number):
    client = build.client_of(build.person("ann", *build.OPERATE))
    body = f'{{"text": {number}}}'
    path = f"/api/v1/sessions/{build.session().pk}/messages/"
    answer = client.generic("POST", path, body, content_type="application/json")
    assert answer.status_code == 400
    assert number in answer.json()["detail"]
