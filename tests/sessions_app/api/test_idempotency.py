"""A retried request gets the first answer, and a key never means two things."""

import pytest

from sessions_app.models import Credential, IdempotencyKey
from tests.sessions_app.api import build

pytestmark = pytest.mark.django_db
CREDENTIALS = "/api/v1/credentials/"
SECRET = "sk-a-long-secret-value-9876"


@pytest.fixture
def client():
    return build.client_of(
        build.person("ann", *build.OPERATE, "add_credential", "change_credential")
    )


def post(client, path, body, key):
    return client.post(path, body, headers={"Idempotency-Key": key})


@pytest.mark.parametrize("key", ["0b1f2c7e-5d3a-4c7e-9a51-2f6f0c1d9e11", "my retry 1"])
def test_a_retry_gets_the_first_answer_and_acts_once(client, key):
    body = {"name": "openai-main", "value": SECRET}
    first = post(client, CREDENTIALS, body, key)
    again = post(client, CREDENTIALS, body, key)
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json() == again.json()
    assert again["Idempotency-Replayed"] == "true"
    assert Credential.objects.get().revision == 1


def test_the_same_key_with_another_body_is_refused(client):
    post(client, CREDENTIALS, {"name": "openai-main", "value": SECRET}, "k")
    refused = post(client, CREDENTIALS, {"name": "openai-main", "value": "another-value"}, "k")
    assert refused.status_code == 409
    assert refused.json()["code"] == "idempotency_key_reused"
    assert Credential.objects.get().value == SECRET


def test_the_same_key_at_another_address_is_refused(client):
    build.session()
    post(client, CREDENTIALS, {"name": "a", "value": SECRET}, "k")
    refused = post(client, "/api/v1/sessions/refund-desk-1/stop", {"kind": "cancel"}, "k")
    assert refused.json()["code"] == "idempotency_key_reused"


def test_a_key_with_which_a_message_was_edited_does_not_withdraw_it(client):
    build.session(status="completed")
    asked = {"path": "/api/v1/sessions/refund-desk-1/queue/m-1", "data": {"text": "New."}}
    edited = client.patch(**asked, headers={"Idempotency-Key": "k"})
    assert edited.json()["code"] == "session_closed"
    refused = client.delete(**asked, headers={"Idempotency-Key": "k"})
    assert refused.json()["code"] == "idempotency_key_reused"


def test_the_last_slash_and_the_order_of_fields_make_no_other_request(client):
    post(client, "/api/v1/credentials", {"name": "a", "value": SECRET}, "k")
    again = post(client, CREDENTIALS, {"value": SECRET, "name": "a"}, "k")
    assert again.status_code == 201


def test_two_people_may_use_the_same_key(client):
    other = build.client_of(build.person("bob", "add_credential", "change_credential"))
    post(client, CREDENTIALS, {"name": "a", "value": SECRET}, "k")
    assert post(other, CREDENTIALS, {"name": "b", "value": SECRET}, "k").status_code == 201


def test_an_invalid_request_does_not_use_its_key_up(client):
    assert post(client, CREDENTIALS, {"name": "not a name!"}, "k").status_code == 400
    assert post(client, CREDENTIALS, {"name": "a", "value": SECRET}, "k").status_code == 201


def test_a_refusal_that_is_final_is_the_answer_of_a_retry_too(client):
    row = build.session(status="completed")
    path = "/api/v1/sessions/refund-desk-1/messages"
    first = post(client, path, {"text": "Hello"}, "k")
    row.status = "running"
    row.save()
    again = post(client, path, {"text": "Hello"}, "k")
    assert (first.status_code, again.status_code) == (409, 409)
    assert first.json() == again.json()
    assert again["Content-Type"] == "application/problem+json"


def test_a_request_that_found_the_engine_away_runs_again_but_only_with_its_body(client, settings):
    settings.DEXWEB_TEMPORAL_ADDRESS, settings.DEXWEB_ENGINE_TIMEOUT = "127.0.0.1:1", 1.0
    row = build.session()
    path = "/api/v1/sessions/refund-desk-1/messages"
    assert post(client, path, {"text": "Hello"}, "k").status_code == 503
    assert post(client, path, {"text": "Bye"}, "k").json()["code"] == "idempotency_key_reused"
    row.status = "completed"
    row.save()
    assert post(client, path, {"text": "Hello"}, "k").json()["code"] == "session_closed"


@pytest.mark.parametrize("key", ["x" * 201, "a\tb"])
def test_a_key_that_cannot_be_kept_is_refused(client, key):
    assert post(client, CREDENTIALS, {"name": "a", "value": SECRET}, key).status_code == 400


def test_no_secret_is_kept_with_a_key(client):
    post(client, CREDENTIALS, {"name": "a", "value": SECRET}, "k")
    kept = IdempotencyKey.objects.values().get()
    assert SECRET not in str(kept)
