"""Holding, editing, moving deadlines, receipts and the audit log over REST."""

from datetime import timedelta

import pytest
from django.utils import timezone

from approvals_app import audit
from approvals_app.models import Decision
from tests.sessions_app.api import build
from tests.sessions_app.api.build import NOON

pytestmark = pytest.mark.django_db
BASE = "/api/v1/approvals"
KEY = "refunds.approve"
ACTS = {
    "hold": {},
    "take-over": {"seconds": 60},
    "release": {},
    "extend": {"until": "2999-01-01T00:00:00Z"},
}


@pytest.fixture(autouse=True)
def no_engine(settings):
    settings.DEXWEB_TEMPORAL_ADDRESS = "127.0.0.1:1"
    settings.DEXWEB_ENGINE_TIMEOUT = 1.0


@pytest.fixture
def ann():
    return build.person("ann", *build.LOOK, keys=(KEY,))


@pytest.fixture
def client(ann):
    return build.client_of(ann)


def edited(row, **changes):
    return {"verdict": "approve", "revision": 1, "args_hash": row.args_hash, **changes}


def editable(args='{"amount": 12.50}', **policy):
    session = build.session()
    schema = {
        "type": "object",
        "properties": {"amount": {"type": "number", "maximum": 100}},
        "required": ["amount"],
    }
    build.call(session, "call-i-1", args, schema=schema)
    return build.interrupt(session, args=args, policy={"editable": True, **policy})


def wrote(session, ann, bob):
    build.message(session, "more", author=ann, turn=1)


def edited_a_message(session, ann, bob):
    edit = {"edited_by": ann, "edited_at": build.NOON}
    build.message(session, "more", author=bob, turn=1, **edit)


def answered(session, ann, bob):
    question = {"kind": "question", "state": "answered", "decided_by": ann}
    build.interrupt(session, "i-2", **question)


def led(session, ann, bob):
    session.behind.add(ann)


@pytest.mark.parametrize(
    ("had_a_say", "because"),
    [
        (wrote, "you wrote to it last"),
        (edited_a_message, "you edited what it was told last"),
        (answered, "you answered its question"),
        (
            led,
            "you had a say in it (its settings, an edited message, or a session above or below it)",
        ),
    ],
)
def test_four_eyes_say_what_the_person_did(ann, client, had_a_say, because):
    bob = build.person("bob", *build.LOOK)
    session = build.session(started_by=bob)
    build.message(session, "hello", author=bob, turn=1)
    had_a_say(session, ann, bob)
    row = build.interrupt(session, policy={"four_eyes": True})
    response = client.post(f"{BASE}/i-1/decide", edited(row))
    assert (response.status_code, response.json()["because"]) == (403, because)


# Holds and deadlines -------------------------------------------------------------------------


@pytest.mark.parametrize("act", ACTS)
class TestEveryAct:
    def test_needs_the_permission_key(self, act):
        build.interrupt(build.session())
        client = build.client_of(build.person("vic", *build.LOOK))
        response = client.post(f"{BASE}/i-1/{act}", ACTS[act])
        assert (response.status_code, response.json()["code"]) == (403, "not_allowed")

    def test_is_kept_from_who_asked_where_four_eyes_are_wanted(self, act, ann, client):
        session = build.session(started_by=ann)
        build.message(session, "hello", author=ann, turn=1)
        build.interrupt(session, policy={"four_eyes": True})
        response = client.post(f"{BASE}/i-1/{act}", ACTS[act])
        assert (response.status_code, response.json()["code"]) == (403, "four_eyes")
        assert response.json()["because"] == "you started this session"

    @pytest.mark.parametrize(
        ("state", "code"),
        [("approved", "interrupt_already_decided"), ("expired", "interrupt_expired")],
    )
    def test_comes_too_late_for_what_is_over(self, act, client, state, code):
        build.interrupt(build.session(), state=state)
        response = client.post(f"{BASE}/i-1/{act}", ACTS[act])
        assert (response.status_code, response.json()["code"]) == (409, code)
        assert response.json()["interrupt"]["state"] == state

    def test_says_that_the_engine_is_away(self, act, client):
        build.interrupt(build.session())
        response = client.post(f"{BASE}/i-1/{act}", ACTS[act])
        assert (response.status_code, response.json()["code"]) == (503, "engine_unavailable")
        assert response["Retry-After"] == "5"

    def test_takes_no_name_of_somebody_else(self, act, client):
        build.interrupt(build.session())
        response = client.post(f"{BASE}/i-1/{act}", {**ACTS[act], "actor": "bob"})
        assert (response.status_code, list(response.json()["errors"])) == (400, ["actor"])

    def test_is_not_done_by_reading(self, act, client):
        build.interrupt(build.session())
        assert client.get(f"{BASE}/i-1/{act}").status_code == 405


@pytest.mark.parametrize(
    ("act", "body"),
    [
        ("hold", {"seconds": 0}),
        ("hold", {"seconds": 601}),
        ("take-over", {"seconds": "long"}),
        ("extend", {}),
        ("extend", {"until": "2999-01-01T00:00:00"}),
        ("extend", {"until": 5}),
        ("extend", {"until": "9999-12-31T23:59:59-23:59"}),
    ],
)
def test_what_means_nothing_is_refused(client, act, body):
    build.interrupt(build.session())
    response = client.post(f"{BASE}/i-1/{act}", body)
    assert (response.status_code, response.json()["code"]) == (400, "invalid")


def test_a_deadline_moves_to_a_moment_to_come(client):
    build.interrupt(build.session())
    response = client.post(f"{BASE}/i-1/extend", {"until": "2020-01-01T00:00:00+01:00"})
    assert (response.status_code, response.json()["code"]) == (400, "deadline_in_past")


def test_who_holds_an_approval_is_shown_and_found_until_the_hold_runs_out(client):
    session = build.session()
    now = timezone.now()
    for pk, until in (("i-1", now + timedelta(minutes=5)), ("i-2", now - timedelta(seconds=1))):
        build.interrupt(session, pk, hold_by_name="bob", hold_since=NOON, hold_until=until)
    lock = client.get(f"{BASE}/i-1").json()["lock"]
    assert (lock["holder"], lock["kind"], lock["since"]) == ("bob", "hold", "2026-03-01T12:00:00Z")
    assert client.get(f"{BASE}/i-2").json()["lock"] is None
    found = client.get(f"{BASE}/?held_by=bob").json()["results"]
    assert [row["id"] for row in found] == ["i-1"]


# Edited arguments ----------------------------------------------------------------------------


@pytest.mark.parametrize("change", [{"args": {"amount": 99.5}}, {"args_json": '{"amount": 99.50}'}])
def test_edited_arguments_are_kept_as_they_will_run(client, change):
    row = editable()
    response = client.post(f"{BASE}/i-1/decide", edited(row, **change))
    assert response.status_code == 503
    assert Decision.objects.get().edited_args == '{"amount": 99.5}'
    [vote] = response.json()["interrupt"]["votes"]
    assert vote["edited"] is True


def test_an_integer_of_any_size_is_edited_digit_for_digit(client):
    row = editable()
    big = '{"amount": 1, "order": 12345678901234567890}'
    client.post(
        f"{BASE}/i-1/decide", edited(row, args={"amount": 1, "order": 12345678901234567890})
    )
    assert Decision.objects.get().edited_args == big


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"args": {"amount": 101}}, "amount"),
        ({"args": {"amount": "12"}}, "amount"),
        ({"args": {}}, "amount"),
        ({"args_json": '{"amount": 1'}, "not JSON"),
        ({"args_json": '{"amount": 1, "amount": 2}'}, "twice"),
        ({"args_json": "[1]"}, "object"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_with_where(client, change, words):
    row = editable()
    response = client.post(f"{BASE}/i-1/decide", edited(row, **change))
    assert (response.status_code, response.json()["code"]) == (422, "invalid_arguments")
    assert words in " ".join(response.json()["errors"])
    assert not Decision.objects.exists()


def test_arguments_that_may_not_be_edited_are_not(client):
    row = build.interrupt(build.session())
    response = client.post(f"{BASE}/i-1/decide", edited(row, args={"amount": 1}))
    assert (response.status_code, response.json()["code"]) == (403, "not_editable")


def test_an_approval_says_what_was_edited_and_under_which_policy(client):
    policy = {"version": 3, "approve_n": 2, "editable": True, "source": "kept to ourselves"}
    build.interrupt(
        build.session(), policy=policy, original_args='{"amount": 99}', edited_by_name="bob"
    )
    body = client.get(f"{BASE}/i-1").json()
    assert body["policy"] == {"version": 3, "approve_n": 2, "editable": True}
    assert (body["original_args_json"], body["edited_by"]) == ('{"amount": 99}', "bob")


# Receipt and audit log -----------------------------------------------------------------------


def test_a_receipt_says_what_was_asked_and_that_nothing_ran_yet(client):
    build.interrupt(build.session())
    receipt = client.get(f"{BASE}/i-1/receipt").json()
    assert receipt["asked"]["tool"] == "shop__issue_refund"
    assert (receipt["decided"], receipt["ran"], receipt["equal"]) == (None, None, None)
    assert client.get(f"{BASE}/none/receipt").status_code == 404


@pytest.fixture
def reader():
    return build.client_of(build.person("rita", "view_auditentry"))


def seqs(response):
    return [row["seq"] for row in response.json()["results"]]


def test_the_audit_log_is_for_who_may_read_it(client, reader):
    assert client.get("/api/v1/audit/").status_code == 403
    assert reader.get("/api/v1/audit/").status_code == 200


def test_the_audit_log_is_listed_newest_first_filtered_and_page_by_page(reader):
    bob = build.person("bob")
    audit.record(bob, "hold.taken", "interrupt:i-1", session_id="s-1")
    audit.record(bob, "hold.released", "interrupt:i-1")
    entry = audit.record(None, "agent.changed", "agent:desk", changes={})
    first = reader.get("/api/v1/audit/?limit=2")
    assert seqs(first) == [3, 2]
    assert seqs(reader.get(first.json()["next"])) == [1]
    assert seqs(reader.get("/api/v1/audit/?actor=bob&action=hold")) == [2, 1]
    assert seqs(reader.get("/api/v1/audit/?session=s-1")) == [1]
    assert first.json()["results"][0]["hash"] == entry.hash
    wrong = reader.get("/api/v1/audit/?since=yesterday")
    assert (wrong.status_code, list(wrong.json()["errors"])) == (400, ["since"])
