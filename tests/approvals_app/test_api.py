"""Approvals over REST: what is shown, and how a decision is taken or refused."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from approvals_app.models import Decision, Interrupt
from tests.sessions_app.api import build

pytestmark = pytest.mark.django_db
BASE = "/api/v1/approvals"
KEY = "refunds.approve"


@pytest.fixture
def client():
    return build.client_of(build.person("ann", *build.LOOK, keys=(KEY,)))


@pytest.fixture
def no_engine(settings):
    settings.DEXWEB_TEMPORAL_ADDRESS = "127.0.0.1:1"
    settings.DEXWEB_ENGINE_TIMEOUT = 1.0


def decision_on(row, verdict="approve", **changes):
    return {"verdict": verdict, "revision": row.revision, "args_hash": row.args_hash, **changes}


def ids(response):
    return [row["id"] for row in response.json()["results"]]


def test_an_approval_shows_what_will_run_to_the_last_digit(client):
    args = '{"amount": 1.10, "order": 12345678901234567890, "to": "José"}'
    row = build.interrupt(build.session(), args=args)
    response = client.get(f"{BASE}/i-1")
    body = response.json()
    assert f'"args":{args}' in response.content.decode()
    assert (body["args_json"], body["args_hash"]) == (args, row.args_hash)
    assert (body["session"], body["step_id"], body["call_id"]) == (
        "refund-desk-1",
        "AwaitToolApproval-i-1",
        "call-i-1",
    )
    assert (body["tool"], body["effect"], body["risk"]) == ("shop__issue_refund", "write", "high")
    assert (body["state"], body["at_deadline"], body["revision"]) == ("pending", "reject", 1)
    assert (body["lock"], body["votes"], body["delivery"]) == (None, [], None)
    assert body["you_may_decide"] is True
    assert body["suspicious"] is False
    assert body["server_time"] < body["deadline"]


@pytest.mark.parametrize("args", ['{"to": "a\u202eb"}', '{"to": "a\\u202eb"}', '{"a\\u200bb": 1}'])
def test_hidden_characters_are_pointed_out_however_they_are_spelled(client, args):
    build.interrupt(build.session(), args=args)
    assert client.get(f"{BASE}/i-1").json()["suspicious"] is True


def test_a_list_leaves_out_very_long_arguments_and_the_approval_has_them(client):
    build.interrupt(build.session(), args='{"text": "' + "x" * 5000 + '"}')
    [listed] = client.get(f"{BASE}/").json()["results"]
    assert (listed["args"], listed["args_json"], listed["suspicious"]) == (None, None, None)
    assert len(client.get(f"{BASE}/i-1").json()["args"]["text"]) == 5000


def test_what_is_due_first_comes_first(client):
    row = build.session()
    now = timezone.now()
    for n in (3, 1, 2):
        build.interrupt(row, f"i-{n}", deadline=now + timedelta(minutes=n))
    first = client.get(f"{BASE}/?state=pending&limit=2")
    assert ids(first) == ["i-1", "i-2"]
    assert ids(client.get(first.json()["next"])) == ["i-3"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("state=rejected", ["i-2"]),
        ("session=refund-desk-2", ["i-2"]),
        ("agent=other", ["i-2"]),
        ("tool=mail__send", ["i-3"]),
        ("permission=mail.send", ["i-3"]),
        ("mine=true", ["i-1", "i-2"]),
        ("mine=true&state=pending", ["i-1"]),
        ("session=none", []),
    ],
)
def test_filters(client, query, found):
    one = build.session()
    build.interrupt(one, "i-1")
    other = build.session("refund-desk-2", agent=build.agent("other"))
    build.interrupt(other, "i-2", state="rejected")
    build.interrupt(one, "i-3", tool="mail__send", permission="mail.send")
    assert sorted(ids(client.get(f"{BASE}/?{query}"))) == found


def test_a_state_that_does_not_exist_is_refused_by_name(client):
    response = client.get(f"{BASE}/?state=pendin")
    assert response.status_code == 400
    assert "Did you mean pending?" in response.json()["detail"]


def test_the_number_of_queries_does_not_grow_with_the_list(client, django_assert_max_num_queries):
    row = build.session()
    voter = build.person("vic")
    for n in range(30):
        interrupt = build.interrupt(row, f"i-{n}")
        Decision.objects.create(
            request_id=f"r-{n}", interrupt=interrupt, actor=voter, verdict="approve", revision=1
        )
    with django_assert_max_num_queries(6):
        assert len(ids(client.get(f"{BASE}/"))) == 30


def test_reading_never_decides(client):
    build.interrupt(build.session())
    assert client.get(f"{BASE}/i-1/decide").status_code == 405
    assert not Decision.objects.exists()


def test_a_decision_is_kept_while_the_engine_is_away(client, no_engine):
    row = build.interrupt(build.session())
    response = client.post(f"{BASE}/i-1/decide", decision_on(row))
    body = response.json()
    assert response.status_code == 503
    assert (body["code"], body["delivery"]) == ("engine_unavailable", "delivery_pending")
    assert body["retryable"]
    assert body["interrupt"]["delivery"] == "delivery_pending"
    [vote] = body["interrupt"]["votes"]
    assert (vote["by"], vote["verdict"]) == ("ann", "approve")


def test_a_kept_decision_is_not_made_twice_by_a_retry(client, no_engine):
    row = build.interrupt(build.session())
    for _ in range(2):
        response = client.post(
            f"{BASE}/i-1/decide", decision_on(row), headers={"Idempotency-Key": "once"}
        )
        assert response.status_code == 503
    assert Decision.objects.count() == 1


@pytest.mark.parametrize("change", [{"revision": 2}, {"args_hash": "0" * 64}])
def test_a_decision_on_something_else_than_waits_is_refused_with_what_waits(client, change):
    row = build.interrupt(build.session())
    response = client.post(f"{BASE}/i-1/decide", decision_on(row, **change))
    body = response.json()
    assert (response.status_code, body["code"]) == (409, "stale_interrupt")
    assert body["interrupt"]["args_hash"] == row.args_hash
    assert not Decision.objects.exists()


@pytest.mark.parametrize(
    ("state", "code"),
    [("rejected", "interrupt_already_decided"), ("expired", "interrupt_expired")],
)
def test_a_decision_on_what_is_over_is_told_how_it_ended(client, state, code):
    row = build.interrupt(build.session(), state=state, decided_by_name="bob")
    response = client.post(f"{BASE}/i-1/decide", decision_on(row))
    body = response.json()
    assert (response.status_code, body["code"]) == (409, code)
    assert body["interrupt"]["state"] == state
    assert body["retryable"] is False


def test_only_who_holds_the_permission_key_decides():
    row = build.interrupt(build.session())
    client = build.client_of(build.person("vic", *build.LOOK))
    response = client.post(f"{BASE}/i-1/decide", decision_on(row))
    assert (response.status_code, response.json()["code"]) == (403, "not_allowed")
    assert response.json()["permission"] == KEY
    assert client.get(f"{BASE}/i-1").json()["you_may_decide"] is False


def test_a_rejection_needs_a_reason(client):
    row = build.interrupt(build.session())
    response = client.post(f"{BASE}/i-1/decide", decision_on(row, "reject"))
    assert (response.status_code, response.json()["code"]) == (400, "reason_required")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"verdict": "maybe"}, "verdict"),
        ({"revision": "one"}, "revision"),
        ({"args_hash": "short"}, "args_hash"),
        ({"actor": "bob"}, "actor"),
        ({"user_id": 1}, "user_id"),
        ({"args": [1]}, "args"),
        ({"args": {"amount": 1}, "args_json": "{}"}, "args_json"),
        ({"args_json": {"amount": 1}}, "args_json"),
    ],
)
def test_a_decision_that_does_not_fit_is_refused_by_field(client, change, field):
    row = build.interrupt(build.session())
    response = client.post(f"{BASE}/i-1/decide", decision_on(row, **change))
    assert response.status_code == 400
    assert field in response.json()["errors"]
    assert Interrupt.objects.get().state == "pending"


def lapsed(row):
    Interrupt.objects.update(deadline=timezone.now())


def decided_elsewhere(row):
    bob = build.person("bob", *build.LOOK)
    row.decisions.create(request_id="r", actor=bob, verdict="approve", revision=1, args_hash="0")


def voted_by_me(row):
    ann = User.objects.get(username="ann")
    row.votes.create(revision=1, verdict="approve", person=ann, at=timezone.now())


def over(state):
    return pytest.param(lambda row: Interrupt.objects.update(state=state), id=state)


@pytest.mark.parametrize(
    "happens",
    [
        *(over(state) for state in Interrupt.State.values if state != "pending"),
        lapsed,
        decided_elsewhere,
        voted_by_me,
    ],
)
def test_nobody_may_decide_what_takes_no_word_of_theirs(client, happens):
    row = build.interrupt(build.session())
    assert client.get(f"{BASE}/i-1").json()["you_may_decide"] is True
    happens(row)
    assert client.get(f"{BASE}/i-1").json()["you_may_decide"] is False
