"""Sessions over REST: the list, one of them, and what is in it."""

from datetime import timedelta

import pytest

from sessions_app.models import Session
from tests.sessions_app.api import build

pytestmark = pytest.mark.django_db
BASE = "/api/v1/sessions"


@pytest.fixture
def client():
    return build.client_of(build.person("ann", *build.OPERATE))


def ids(body):
    return [row["id"] for row in body["results"]]


def walk(client, url):
    """All pages from ``url`` on."""
    pages = []
    while url:
        body = client.get(url).json()
        pages.append(ids(body))
        url = body["next"]
    return pages


def test_a_list_is_read_page_by_page_even_where_times_are_equal(client):
    for n in range(7):
        build.session(f"s-{n}")
    assert walk(client, f"{BASE}/?limit=3") == [
        ["s-6", "s-5", "s-4"],
        ["s-3", "s-2", "s-1"],
        ["s-0"],
    ]


def test_a_row_that_comes_meanwhile_is_neither_repeated_nor_makes_one_be_skipped(client):
    for n in range(4):
        build.session(f"s-{n}", updated_at=build.NOON + timedelta(minutes=n))
    first = client.get(f"{BASE}/?limit=2").json()
    build.session("s-new", updated_at=build.NOON + timedelta(hours=1))
    Session.objects.filter(pk="s-3").delete()
    assert ids(client.get(first["next"]).json()) == ["s-1", "s-0"]


def test_previous_leads_back(client):
    for n in range(5):
        build.session(f"s-{n}")
    first = client.get(f"{BASE}/?limit=2").json()
    second = client.get(first["next"]).json()
    assert first["previous"] is None
    assert ids(client.get(second["previous"]).json()) == ids(first)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("status=running", ["s-idle", "s-waits"]),
        ("status=failed", ["s-failed"]),
        ("phase=waiting_approval", ["s-waits"]),
        ("waiting=true", ["s-waits"]),
        ("waiting=false", ["s-failed", "s-idle"]),
        ("agent=other", ["s-failed"]),
        ("q=hamster", ["s-idle"]),
        ("q=s-fai", ["s-failed"]),
        ("q=nothing", []),
    ],
)
def test_filters(client, query, found):
    build.session("s-idle", title="About a Hamster")
    build.session("s-waits", phase="waiting_approval", waiting=1)
    build.session("s-failed", status="failed", agent=build.agent("other"))
    assert sorted(ids(client.get(f"{BASE}/?{query}").json())) == found


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("status=runing", "status"),
        ("phase=x", "phase"),
        ("waiting=perhaps", "waiting"),
        ("limit=0", "limit"),
        ("limit=many", "limit"),
        ("cursor=x", "cursor"),
        ("cursor=WzEsMl0", "cursor"),
        ("cursor=W2ZhbHNlLDEsMl0", "cursor"),
        ("q=%00", "q"),
    ],
)
def test_a_filter_that_means_nothing_is_refused_by_name(client, query, name):
    response = client.get(f"{BASE}/?{query}")
    assert response.status_code == 400
    assert name in response.json()["errors"]


def test_a_slip_in_a_status_gets_a_hint(client):
    assert "Did you mean running?" in client.get(f"{BASE}/?status=runing").json()["detail"]


def test_the_number_of_queries_does_not_grow_with_the_list(client, django_assert_max_num_queries):
    for n in range(40):
        build.session(f"s-{n}")
    with django_assert_max_num_queries(3):
        assert len(client.get(f"{BASE}/").json()["results"]) == 40


@pytest.mark.parametrize("slash", ["", "/"])
def test_a_session_is_shown_with_and_without_the_last_slash(client, slash):
    bob = build.person("bob")
    row = build.session(
        started_by=bob,
        spend="1.25",
        input_tokens=2**60,
        run_id="run-2",
        last_seq=4,
        labels={"a": "b"},
    )
    build.events(row, 1)
    body = client.get(f"{BASE}/refund-desk-1{slash}").json()
    assert body["id"] == "refund-desk-1"
    assert (body["agent"], body["status"], body["phase"]) == ("refund-desk", "running", "idle")
    assert body["started_by"] == "bob"
    assert body["spend"] == {
        "amount": "1.250000",
        "currency": "USD",
        "unknown": False,
        "limit": None,
        "counted": None,
        "input_tokens": 2**60,
        "output_tokens": 0,
        "model_calls": 0,
    }
    assert body["limits"]["model_calls_per_turn"] == 50
    assert body["limits"]["history_events"] == {"used": 0, "limit": 10_000}
    assert body["limits"]["context_tokens"] == {"used": 0, "limit": None}
    assert body["runs"] == [{"run_id": "run-2", "current": True, "previous": "", "next": ""}]
    assert body["last_seq"] == 5
    assert body["created_at"] == "2026-03-01T12:00:00Z"


def test_a_child_names_its_parent_and_a_parent_its_children(client):
    parent = build.session()
    build.session("refund-desk-1-helper-1", parent=parent)
    above = client.get(f"{BASE}/refund-desk-1").json()
    below = client.get(f"{BASE}/refund-desk-1-helper-1").json()
    assert (above["parent"], above["children"]) == (None, ["refund-desk-1-helper-1"])
    assert (below["parent"], below["children"]) == ("refund-desk-1", [])


def test_the_runs_of_a_continued_session_are_told_oldest_first(client):
    row = build.session(run_id="run-2")
    for seq, run in ((1, "run-1"), (2, "run-2")):
        row.events.create(seq=seq, type="session.continued", payload={"run_id": run}, at=build.NOON)
    runs = client.get(f"{BASE}/refund-desk-1").json()["runs"]
    assert [run["run_id"] for run in runs] == ["run-1", "run-2"]


def test_steps_come_in_order_with_the_beginning_of_their_text(
    client, django_assert_max_num_queries
):
    row = build.session()
    build.step(row, "RunModel-1", 1, text="x" * 10_000)
    for n in range(2, 30):
        build.step(row, f"CallTool-{n}", n, status="waiting")
    with django_assert_max_num_queries(4):
        body = client.get(f"{BASE}/refund-desk-1/steps").json()
    assert [step["position"] for step in body["results"]] == list(range(1, 30))
    assert len(body["results"][0]["text"]) == 4096
    assert len(client.get(f"{BASE}/refund-desk-1/steps?status=completed").json()["results"]) == 1


def test_a_step_is_shown_whole_with_its_call_and_exact_numbers(client):
    row = build.session()
    build.step(row, "CallTool-1", 1, call_id="c-1", text="y" * 10_000)
    build.call(row, "c-1", '{"n": 12345678901234567890, "d": 1.10}')
    response = client.get(f"{BASE}/refund-desk-1/steps/CallTool-1")
    assert '"args":{"n": 12345678901234567890, "d": 1.10}' in response.content.decode()
    assert len(response.json()["text"]) == 10_000


def test_events_are_read_after_a_number(client):
    build.events(build.session(), 5)
    body = client.get(f"{BASE}/refund-desk-1/events?after=2&limit=2").json()
    assert [event["seq"] for event in body["results"]] == [3, 4]
    assert body["last_seq"] == 5
    rest = client.get(body["next"]).json()
    assert [event["seq"] for event in rest["results"]] == [5]
    assert rest["next"] is None


def test_events_that_are_gone_lead_to_the_snapshot(client):
    row = build.session(retained_from=4)
    build.events(row, 5)
    response = client.get(f"{BASE}/refund-desk-1/events?after=1")
    assert response.status_code == 410
    snapshot = response.json()["snapshot"]
    assert client.get(snapshot).json()["last_seq"] == 5


def test_a_snapshot_holds_what_is_open(client):
    row = build.session()
    build.step(row, "RunModel-1", 1)
    build.step(row, "AwaitToolApproval-1", 2, status="waiting")
    build.interrupt(row, args='{"n": 9007199254740993}')
    response = client.get(f"{BASE}/refund-desk-1/snapshot")
    body = response.json()
    assert [step["step_id"] for step in body["steps"]] == ["AwaitToolApproval-1"]
    assert [approval["id"] for approval in body["approvals"]] == ["i-1"]
    assert '"n": 9007199254740993' in response.content.decode()


def test_a_snapshot_shows_no_approvals_to_who_may_not_see_them():
    build.interrupt(build.session())
    client = build.client_of(build.person("sam", "view_session"))
    assert client.get(f"{BASE}/refund-desk-1/snapshot").json()["approvals"] == []


def test_messages_and_the_queue(client):
    row = build.session()
    build.message(row, "first", state="consumed")
    build.message(row, "second")
    assert len(client.get(f"{BASE}/refund-desk-1/messages").json()["results"]) == 2
    [queued] = client.get(f"{BASE}/refund-desk-1/queue").json()["results"]
    assert (queued["id"], queued["text"], queued["author"]) == ("m-second", "second", "ann")


def test_the_graph_is_nodes_and_edges(client):
    row = build.session()
    build.step(row, "RunModel-1", 1)
    build.step(row, "CallTool-1", 2, causes=["RunModel-1"], tool="shop__<b>")
    body = client.get(f"{BASE}/refund-desk-1/graph").json()
    assert [node["step_ids"] for node in body["nodes"]] == [["RunModel-1"], ["CallTool-1"]]
    assert body["edges"] == [
        {"source": "step-RunModel-1", "target": "step-CallTool-1", "part": "turn-1"}
    ]


def test_the_graph_is_drawn_on_request(client):
    build.step(build.session(), "RunModel-1", 1)
    response = client.get(f"{BASE}/refund-desk-1/graph?format=svg")
    assert response.status_code == 200
    assert response["Content-Type"].startswith("image/svg+xml")
    assert "<svg" in response.content.decode()


def test_a_graph_without_a_drawing_still_has_its_nodes(client, settings):
    settings.DEXWEB_DOT = "/nonexistent/dot"
    build.step(build.session(), "RunModel-1", 1, tool="another")
    response = client.get(f"{BASE}/refund-desk-1/graph?format=svg")
    assert response["Content-Type"] == "application/problem+json"
    assert response.json()["code"] == "graph_unavailable"
    assert len(client.get(f"{BASE}/refund-desk-1/graph").json()["nodes"]) == 1


def test_settings_show_what_the_next_turn_begins_with_and_what_of_it_is_the_sessions_own(client):
    session = build.session(agent=build.agent("terse", instructions="Be terse."))
    session.settings, session.settings_revision = {"model": "demo:script"}, 4
    session.save()
    body = client.get(f"{BASE}/refund-desk-1/settings").json()
    assert (body["agent"], body["instructions"], body["revision"]) == ("terse", "Be terse.", 4)
    assert (body["model"], body["changes"]) == ("demo:script", {"model": "demo:script"})


def test_a_session_cannot_start_with_a_model_of_another_provider(client):
    build.agent()
    asked = {"agent": "refund-desk", "message": "Hello", "settings": {"model": "openai:gpt-5.2"}}
    response = client.post(f"{BASE}/", asked)
    assert (response.status_code, response.json()["code"]) == (400, "invalid_settings")
    assert "key" in response.json()["errors"][0]
