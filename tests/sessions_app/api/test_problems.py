"""Every refusal has a status, a stable code, and says whether to try again."""

import pytest
from rest_framework.authtoken.models import Token
from rest_framework.test import APIClient

from tests.sessions_app.api import build

pytestmark = pytest.mark.django_db
BASE = "/api/v1"


def problem(response, status, code):
    body = response.json()
    assert response.status_code == status, body
    assert response["Content-Type"] == "application/problem+json"
    assert {"type", "title", "status", "detail", "code", "retryable"} <= body.keys()
    assert (body["code"], body["status"]) == (code, status)
    return body


def test_nobody_in_particular_is_asked_to_sign_in():
    response = APIClient().get(f"{BASE}/sessions/")
    problem(response, 401, "not_authenticated")
    assert response["WWW-Authenticate"].startswith("Token")


def test_a_wrong_token_is_refused():
    client = APIClient(HTTP_AUTHORIZATION="Token wrong")
    problem(client.get(f"{BASE}/sessions/"), 401, "authentication_failed")


def test_a_token_opens_the_api():
    token = Token.objects.create(user=build.person("ann", *build.LOOK))
    client = APIClient(HTTP_AUTHORIZATION=f"Token {token.key}")
    assert client.get(f"{BASE}/sessions/").status_code == 200


def test_a_deactivated_person_is_refused():
    ann = build.person("ann", *build.LOOK)
    token = Token.objects.create(user=ann)
    ann.is_active = False
    ann.save()
    client = APIClient(HTTP_AUTHORIZATION=f"Token {token.key}")
    problem(client.get(f"{BASE}/sessions/"), 401, "authentication_failed")


def test_a_browser_session_needs_its_csrf_token_to_post():
    ann = build.person("ann", *build.OPERATE)
    client = APIClient(enforce_csrf_checks=True)
    client.force_login(ann)
    assert client.get(f"{BASE}/sessions/").status_code == 200
    problem(client.post(f"{BASE}/sessions/", {}), 403, "permission_denied")


@pytest.mark.parametrize(
    "path",
    [
        "sessions/",
        "sessions/x/",
        "sessions/x/events",
        "approvals/",
        "agents/",
        "connections/",
        "credentials/",
    ],
)
def test_reading_needs_a_permission_that_is_named(path):
    client = build.client_of(build.person("nobody"))
    body = problem(client.get(f"{BASE}/{path}"), 403, "permission_denied")
    assert "needs the permission" in body["detail"]


@pytest.mark.parametrize("path", ["sessions/", "sessions/x/messages", "sessions/x/stop"])
def test_operating_needs_more_than_looking(path):
    client = build.client_of(build.person("viewer", *build.LOOK))
    body = problem(client.post(f"{BASE}/{path}", {}), 403, "permission_denied")
    assert "operate_session" in body["detail"]


@pytest.mark.parametrize("path", ["nothing", "nothing/", "sessions/x/nothing", "sessions//"])
def test_an_unknown_address_is_said_to_be_one(path):
    problem(APIClient().get(f"{BASE}/{path}"), 404, "unknown_address")


@pytest.mark.parametrize("path", ["sessions/none/", "sessions/none/steps", "approvals/none/"])
def test_what_is_not_there_is_not_found(path):
    client = build.client_of(build.person("ann", *build.LOOK))
    assert problem(client.get(f"{BASE}/{path}"), 404, "not_found")["retryable"] is False


def test_a_method_that_makes_no_sense_is_refused():
    client = build.client_of(build.person("ann", *build.OPERATE))
    problem(client.delete(f"{BASE}/sessions/"), 405, "method_not_allowed")


def test_an_invalid_body_names_its_fields():
    client = build.client_of(build.person("ann", *build.OPERATE))
    body = problem(client.post(f"{BASE}/sessions/", {"message": "Hello"}), 400, "invalid")
    assert "agent" in body["errors"]


@pytest.mark.parametrize("field", ["actor", "user", "started_by", "lables"])
def test_a_field_that_does_not_belong_is_refused_rather_than_ignored(field):
    client = build.client_of(build.person("ann", *build.OPERATE))
    asked = {"agent": "refund-desk", "message": "Hello", field: "bob"}
    assert field in problem(client.post(f"{BASE}/sessions/", asked), 400, "invalid")["errors"]


@pytest.mark.parametrize(
    "body",
    [
        "{",
        '{"a": NaN}',
        '{"a": 1, "a": 2}',
        '"\ud800"'.encode("utf-8", "surrogatepass"),
        "[" * 100_000,
    ],
)
def test_only_strict_json_is_read(body):
    client = build.client_of(build.person("ann", *build.OPERATE))
    response = client.post(f"{BASE}/sessions/", body, content_type="application/json")
    problem(response, 400, "parse_error")


@pytest.mark.parametrize("body", ["[]", '"text"', "12", "null"])
def test_a_body_that_is_no_object_is_refused(body):
    client = build.client_of(build.person("ann", *build.OPERATE))
    response = client.post(f"{BASE}/sessions/", body, content_type="application/json")
    problem(response, 400, "invalid")


def test_a_body_over_the_limit_is_too_large():
    client = build.client_of(build.person("ann", *build.OPERATE))
    response = client.post(
        f"{BASE}/sessions/", '"' + "x" * 1024 * 1024 + '"', content_type="application/json"
    )
    assert problem(response, 413, "too_large")["limit"] == 1024 * 1024


def test_a_form_is_not_json():
    client = build.client_of(build.person("ann", *build.OPERATE))
    response = client.post(
        f"{BASE}/sessions/", "a=1", content_type="application/x-www-form-urlencoded"
    )
    problem(response, 415, "unsupported_media_type")


def test_too_many_posts_are_told_when_to_come_back(settings):
    settings.DEXWEB_API_POSTS_PER_MINUTE = 2
    client = build.client_of(build.person("ann", *build.OPERATE))
    answers = [client.post(f"{BASE}/sessions/", {}) for _ in range(4)]
    body = problem(answers[-1], 429, "too_many_requests")
    assert body["retryable"]
    assert int(answers[-1]["Retry-After"]) >= 1


@pytest.fixture
def no_engine(settings):
    settings.DEXWEB_TEMPORAL_ADDRESS = "127.0.0.1:1"
    settings.DEXWEB_ENGINE_TIMEOUT = 1.0


def test_an_engine_that_is_away_is_worth_another_try(no_engine):
    build.agent()
    client = build.client_of(build.person("ann", *build.OPERATE))
    response = client.post(f"{BASE}/sessions/", {"agent": "refund-desk", "message": "Hello"})
    assert problem(response, 503, "engine_unavailable")["retryable"]
    assert int(response["Retry-After"]) >= 1


def test_what_the_action_refuses_keeps_its_code():
    build.agent()
    client = build.client_of(build.person("ann", *build.OPERATE))
    blank = client.post(f"{BASE}/sessions/", {"agent": "refund-desk", "message": "  "})
    problem(blank, 400, "blank_message")
    long = client.post(f"{BASE}/sessions/", {"agent": "refund-desk", "message": "x" * 70_000})
    assert problem(long, 413, "too_large")["size"] == 70_000


def test_a_session_that_has_ended_takes_no_message():
    build.session(status="completed")
    client = build.client_of(build.person("ann", *build.OPERATE))
    response = client.post(f"{BASE}/sessions/refund-desk-1/messages", {"text": "Hello"})
    assert problem(response, 409, "session_closed")["session_status"] == "completed"


@pytest.mark.parametrize("kind", ["terminate", "fail"])
def test_a_forced_end_needs_a_reason(kind):
    build.session()
    client = build.client_of(build.person("ann", *build.OPERATE))
    response = client.post(f"{BASE}/sessions/refund-desk-1/stop", {"kind": kind})
    problem(response, 400, "reason_required")
