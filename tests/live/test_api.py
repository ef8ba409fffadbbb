"""The REST API on the real engine: what it accepts happens, once."""

import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connections
from rest_framework.test import APIClient

from sessions_app.models import Session
from tests.live.conftest import Live, until

BASE = "/api/v1"


@pytest.fixture
def desk(live: Live, standing_worker: None) -> Live:
    live.agent(pool="standing")
    return live


def client_of(live: Live, name: str = "ann", *keys: str) -> APIClient:
    client = APIClient()
    client.force_authenticate(live.person(name, *keys))
    return client


def post(client: APIClient, path: str, body: dict[str, Any], key: str = "") -> Any:
    return client.post(
        f"{BASE}/{path}", body, headers={"Idempotency-Key": key or str(uuid.uuid4())}
    )


def test_a_session_is_started_followed_decided_and_ended_over_rest(desk: Live) -> None:
    client = client_of(desk, "ann", "refunds.approve")
    asked = {"agent": "desk", "message": "Order A-1042 came late.", "labels": {"team": "blue"}}
    started = post(client, "sessions/", asked)
    assert started.status_code == 201, started.json()
    session_id = started.json()["id"]
    assert (started.json()["labels"], started.json()["started_by"]) == ({"team": "blue"}, "ann")

    def pending() -> Any:
        return client.get(f"{BASE}/approvals/?state=pending&session={session_id}").json()["results"]

    [waiting] = until(pending, "an approval")
    decided = post(
        client,
        f"approvals/{waiting['id']}/decide",
        {
            "verdict": "approve",
            "revision": waiting["revision"],
            "args_hash": waiting["args_hash"],
        },
    )
    assert decided.status_code == 200, decided.json()
    assert (decided.json()["state"], decided.json()["delivery"]) == ("approved", "delivered")
    assert decided.json()["decided_by"] == "ann"
    desk.idle(Session.objects.get(pk=session_id))

    events = client.get(f"{BASE}/sessions/{session_id}/events").json()
    types = [event["type"] for event in events["results"]]
    assert "approval.decided" in types
    assert "tool.completed" in types
    ended = post(client, f"sessions/{session_id}/stop", {"kind": "complete"})
    assert ended.status_code == 202, ended.json()
    until(lambda: Session.objects.get(pk=session_id).status == "completed", "the end")


def test_a_retried_start_is_one_session_and_a_retried_message_one_message(desk: Live) -> None:
    client = client_of(desk)
    asked = {"agent": "desk", "message": "Order A-1042 came late."}
    first, again = (post(client, "sessions/", asked, "start-1") for _ in range(2))
    assert first.json() == again.json()
    path = f"sessions/{first.json()['id']}/messages"
    said, repeated = (post(client, path, {"text": "And hurry."}, "say-1") for _ in range(2))
    assert said.status_code == 202, said.json()
    assert said.json() == repeated.json()
    texts = [row["text"] for row in client.get(f"{BASE}/{path}").json()["results"]]
    assert texts.count("And hurry.") == 1


def test_the_same_key_at_the_same_instant_acts_once(desk: Live) -> None:
    ann = desk.person("ann")

    def start(_: int) -> str:
        client = APIClient()
        client.force_authenticate(ann)
        answer = post(client, "sessions/", {"agent": "desk", "message": "A-1042 came late."}, "k")
        connections.close_all()
        assert answer.status_code == 201, answer.json()
        return str(answer.json()["id"])

    with ThreadPoolExecutor(4) as threads:
        assert len(set(threads.map(start, range(4)))) == 1
    assert Session.objects.count() == 1


def test_cancelling_without_a_turn_is_a_conflict(live: Live, standing_worker: None) -> None:
    live.agent([{"text": "Done."}], pool="standing")
    client = client_of(live)
    session_id = post(client, "sessions/", {"agent": "desk", "message": "Hello"}).json()["id"]
    live.idle(Session.objects.get(pk=session_id))
    refused = post(client, f"sessions/{session_id}/cancel-turn", {})
    assert (refused.status_code, refused.json()["code"]) == (409, "no_turn")


def test_waiting_messages_are_edited_steered_and_withdrawn_and_settings_changed_over_rest(
    desk: Live,
) -> None:
    client = client_of(desk, "ann", "refunds.approve")
    session = Session.objects.get(
        pk=post(
            client, "sessions/", {"agent": "desk", "message": "Order A-1042 came late."}
        ).json()["id"]
    )
    desk.ask(session)
    address = f"sessions/{session.pk}"
    first, second = (
        post(client, f"{address}/messages", {"text": text}).json()["id"] for text in ("One", "Two")
    )
    edited = client.patch(f"{BASE}/{address}/queue/{first}", {"text": "Uno"})
    assert (edited.status_code, edited.json()["state"]) == (202, "edited")
    assert client.delete(f"{BASE}/{address}/queue/{second}").json()["state"] == "deleted"
    listed = client.get(f"{BASE}/{address}/queue").json()["results"]
    assert [(one["text"], one["edited_by"]) for one in listed] == [("Uno", "ann")]
    assert post(client, f"{address}/queue/{first}/steer", {}).json()["state"] == "steered"
    desk.idle(session)
    gone = client.delete(f"{BASE}/{address}/queue/{first}")
    assert (gone.status_code, gone.json()["code"]) == (404, "message_not_found")
    asked = {"revision": 0, "patch": {"instructions": "Be brief."}}
    changed = client.patch(f"{BASE}/{address}/settings", asked)
    assert (changed.status_code, changed.json()["state"]) == (202, "1")
    stale = client.patch(f"{BASE}/{address}/settings", asked)
    assert (stale.status_code, stale.json()["code"]) == (409, "stale_settings")
