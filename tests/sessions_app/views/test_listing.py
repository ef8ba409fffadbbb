"""The list of sessions: what it shows, finds and pages through."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission

from tests.sessions_app.api import build

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann():
    return build.person("ann", *build.LOOK, keys=("refunds.approve",))


@pytest.fixture
def reader(client, ann):
    client.force_login(ann)
    return client


def ids(response):
    return [session.pk for session in response.context["sessions"]]


def walk(client, query, way="next"):
    """The ids of each page from this one on."""
    pages = []
    while query:
        response = client.get(f"/sessions/?{query}")
        pages.append(ids(response))
        query = response.context[way]
    return pages


def test_the_newest_comes_first_with_its_state_in_a_word(reader):
    build.session("old", title="Old one", status="completed")
    later = build.NOON + timedelta(hours=1)
    build.session("new", title="New one", phase="waiting_approval", updated_at=later)
    response = reader.get("/sessions/")
    page = response.content.decode()
    assert ids(response) == ["new", "old"]
    for part in ("Waits for approval", "Completed", "New one", "Old one"):
        assert part in page


def test_a_title_is_text_not_markup(reader):
    build.session(title="<script>alert(1)</script>")
    page = reader.get("/sessions/").content.decode()
    assert "<script>alert" not in page
    assert "&lt;script&gt;" in page


def test_equal_times_are_paged_without_skipping_or_repeating(reader):
    for n in range(7):
        build.session(f"s-{n}")
    assert walk(reader, "limit=3") == [["s-6", "s-5", "s-4"], ["s-3", "s-2", "s-1"], ["s-0"]]


def test_the_way_back_shows_the_same_pages(reader):
    for n in range(7):
        build.session(f"s-{n}")
    last = reader.get("/sessions/?limit=3")
    while last.context["next"]:
        last = reader.get(f"/sessions/?{last.context['next']}")
    back = walk(reader, last.context["previous"], "previous")
    assert back == [["s-3", "s-2", "s-1"], ["s-6", "s-5", "s-4"]]


def test_a_session_that_moves_meanwhile_makes_no_other_be_skipped(reader):
    rows = [build.session(f"s-{n}") for n in range(4)]
    first = reader.get("/sessions/?limit=2")
    rows[0].updated_at = build.NOON + timedelta(hours=1)
    rows[0].save()
    assert ids(reader.get(f"/sessions/?{first.context['next']}")) == ["s-1"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("status=running", {"a", "b"}),
        ("status=failed", {"c"}),
        ("phase=waiting_approval", {"a"}),
        ("agent=other", {"b"}),
        ("waiting=1", {"a"}),
        ("unknown=1", {"c"}),
        ("mine=1", {"b"}),
        ("needs_me=1", {"a"}),
        ("q=REFUND", {"a"}),
        ("q=c", {"c"}),
        ("status=running&agent=other", {"b"}),
        ("q=%25", set()),
    ],
)
def test_filters_stand_in_the_address(reader, ann, query, found):
    waits = build.session("a", title="Refund", phase="waiting_approval", waiting=1)
    build.interrupt(waits)
    build.session("b", title="Bread", agent=build.agent("other"), started_by=ann)
    build.session("c", title="Milk", status="failed", phase="waiting_approval", unknown_outcomes=1)
    assert set(ids(reader.get(f"/sessions/?{query}"))) == found


def test_a_used_up_budget_needs_whoever_may_raise_it_and_nobody_else(reader, ann):
    build.session("a", phase="waiting_spend")
    assert ids(reader.get("/sessions/?needs_me=1")) == []
    ann.user_permissions.add(Permission.objects.get(codename="raise_spend"))
    assert ids(reader.get("/sessions/?needs_me=1")) == ["a"]


def test_an_idle_session_says_that_its_last_turn_failed_and_is_found_by_it(reader):
    for pk, states in (
        ("a", ["failed"]),
        ("b", ["failed", "completed"]),
        ("c", ["failed", "running"]),
    ):
        of = build.session(pk, turn=len(states), phase="thinking" if pk == "c" else "idle")
        for number, state in enumerate(states, start=1):
            of.turns.create(number=number, state=state, started_at=build.NOON)
    line = reader.get("/sessions/?rows=a").content.decode()
    assert "Idle" in line
    assert "Turn failed" in line
    assert "Turn failed" not in reader.get("/sessions/?rows=b,c").content.decode()
    assert ids(reader.get("/sessions/?turn_failed=1")) == ["a"]
    assert ids(reader.get("/sessions/?phase=idle")) == ["b", "a"]


def test_a_filter_is_said_in_words_and_kept_by_the_links(reader):
    for n in range(3):
        build.session(f"s-{n}", title="Refund")
    response = reader.get("/sessions/?status=running&q=Refund&limit=2")
    assert "running, “Refund” in title or id" in response.content.decode()
    for kept in ("status=running", "q=Refund", "limit=2", "cursor="):
        assert kept in response.context["next"]


@pytest.mark.parametrize(
    "query",
    [
        "status=nonsense",
        "phase=%00",
        "limit=-1",
        "limit=99999999999999999999",
        "cursor=xyz",
        "cursor=W2ZhbHNlLDEsMl0",
        "cursor=%F0%9F%92%A9",
        "q=%00",
        "agent=%ED%A0%80",
        "waiting=maybe",
    ],
)
def test_an_invalid_value_never_breaks_the_page(reader, query):
    build.session("a")
    response = reader.get(f"/sessions/?{query}")
    assert response.status_code == 200


def test_a_status_that_does_not_exist_is_left_out_and_said(reader):
    build.session("a")
    response = reader.get("/sessions/?status=nonsense")
    assert ids(response) == ["a"]
    assert "status “nonsense”" in response.content.decode()


def test_the_number_of_queries_does_not_grow_with_the_list(reader, django_assert_max_num_queries):
    for n in range(40):
        build.interrupt(build.session(f"s-{n}", waiting=1), f"i-{n}")
    with django_assert_max_num_queries(10):
        assert len(ids(reader.get("/sessions/"))) == 40


def test_visible_rows_are_brought_up_to_date_by_id(reader):
    build.session("a", title="First")
    build.session("b", title="Second")
    page = reader.get("/sessions/?rows=a,none").content.decode()
    assert "First" in page
    assert "Second" not in page
    assert "<html" not in page


def test_new_rows_are_counted_only_under_the_filter(reader):
    build.session("a", status="failed")
    build.session("b")
    page = reader.get("/sessions/?status=failed&matching=1&rows=a,b").content.decode()
    assert 'data-row="a"' in page
    assert 'data-row="b"' not in page


def test_no_sessions_at_all_says_what_to_do(reader):
    build.agent()
    assert "No sessions yet" in reader.get("/sessions/").content.decode()


def test_no_agents_says_how_to_get_one(reader):
    assert "import_agents" in reader.get("/sessions/").content.decode()


def test_none_under_this_filter_offers_to_clear_it(reader):
    build.session("a")
    assert "Clear the filter" in reader.get("/sessions/?q=zzz").content.decode()


def test_reading_the_list_needs_the_permission(client):
    client.force_login(build.person("nobody"))
    assert client.get("/sessions/").status_code == 403


def test_agents_are_listed_with_their_policies_in_words(reader):
    desk = build.agent("desk", model="demo:script")
    desk.tools.create(pattern="shop__lookup", effect="read", needs_approval=False)
    desk.tools.create(pattern="shop__refund", permission="refunds.approve", risk="high")
    page = reader.get("/agents/").content.decode()
    for part in ("demo:script", "shop__lookup", "Reads only", "Runs at once", "refunds.approve"):
        assert part in page
    assert "within 1 h" in page
    assert "Any other tool" in page
