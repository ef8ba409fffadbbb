"""Insight: how fast and how people decide, and where nobody seems to look."""

import itertools
from datetime import timedelta

import pytest
from django.utils import timezone

from approvals_app import insight
from approvals_app.models import Decision
from tests.sessions_app.api import build

pytestmark = pytest.mark.django_db
numbers = itertools.count(1)


@pytest.fixture
def client(client):
    client.force_login(build.person("rita", "view_interrupt", "view_auditentry"))
    return client


@pytest.fixture
def session():
    return build.session()


def ended(session, state="approved", seconds=60.0, days=1, by=None, **fields):
    """An approval that took so many seconds and ended so many days ago."""
    end = timezone.now() - timedelta(days=days)
    asked = end - timedelta(seconds=seconds)
    pk = f"i-{next(numbers)}"
    row = build.interrupt(session, pk, state=state, asked_at=asked, decided_at=end, **fields)
    if by is not None:
        verdict = "reject" if state == "rejected" else "approve"
        decision = Decision.objects.create(
            request_id=pk, interrupt=row, actor=by, verdict=verdict, revision=1, state="delivered"
        )
        Decision.objects.filter(pk=decision.pk).update(created_at=end)
    return row


def test_how_they_ended_and_how_long_people_took(session):
    for seconds in (10, 20, 30, 40):
        ended(session, seconds=seconds)
    ended(session, "rejected", seconds=100)
    ended(session, "expired", seconds=3600)
    ended(session, "canceled", seconds=5000)
    ended(session, "approved", seconds=25, edited_by_name="ann")
    build.interrupt(session, "i-pending")
    found = insight.insight(30).overall
    assert (found.approved, found.rejected, found.expired, found.other) == (5, 1, 1, 1)
    assert (found.total, found.edited) == (8, 1)
    # What nobody decided took nobody any time.
    assert found.seconds == pytest.approx([10, 20, 25, 30, 40, 100])
    assert (found.median, found.p90) == (pytest.approx(25), pytest.approx(100))


def test_by_tool_the_most_asked_first_and_only_in_the_time_asked_for(session):
    ended(session, tool="mail__send")
    for days in (1, 6, 29, 89):
        ended(session, days=days)
    counts = {
        days: [(row.name, row.total) for row in insight.insight(days).tools] for days in (7, 30, 90)
    }
    assert counts[7] == [("shop__issue_refund", 2), ("mail__send", 1)]
    assert counts[30][0] == ("shop__issue_refund", 3)
    assert counts[90][0] == ("shop__issue_refund", 4)


@pytest.mark.parametrize(
    ("count", "seconds", "hasty"), [(20, 1.5, True), (19, 1.5, False), (20, 2.5, False)]
)
def test_who_approves_everything_within_two_seconds_is_pointed_out(
    client, session, count, seconds, hasty
):
    ann = build.person("ann")
    for _ in range(count):
        ended(session, seconds=seconds, by=ann)
    page = client.get("/approvals/insight/").content.decode()
    assert ("ann approves faster than one can read" in page) is hasty


def test_half_of_them_fast_is_what_counts_and_not_one_that_was_slow(session):
    ann = build.person("ann")
    for seconds in [1.0] * 20 + [9000.0] * 5:
        ended(session, seconds=seconds, by=ann)
    [person] = insight.insight(30).people
    assert (person.hasty, person.median, person.p90) == (
        True,
        pytest.approx(1),
        pytest.approx(9000),
    )


def test_how_others_decide_is_for_those_who_may_read_the_audit_log(client, session):
    ann, bob = build.person("ann", "view_interrupt"), build.person("bob")
    for by in (ann, bob):
        ended(session, by=by)
    assert {row.figures.name for row in client.get("/approvals/insight/").context["people"]} == {
        "ann",
        "bob",
    }
    client.force_login(ann)
    page = client.get("/approvals/insight/")
    assert [row.figures.name for row in page.context["people"]] == ["ann"]
    assert b"bob" not in page.content


def test_the_charts_need_nothing_inline_and_say_their_numbers_in_words(client, session):
    ended(session)
    for _ in range(3):
        ended(session, "rejected")
    page = client.get("/approvals/insight/?days=7").content.decode()
    assert 'aria-label="1 approved, 3 rejected"' in page
    assert '<rect class="is-rejected" x="150.0" y="0" width="450.0"' in page
    assert "style=" not in page


def test_a_time_in_which_nothing_ended_says_so(client, session):
    ended(session, days=20)
    assert (
        "Nothing was decided in these 7 days"
        in client.get("/approvals/insight/?days=7").content.decode()
    )
    assert client.get("/approvals/insight/?days=11").context["insight"].days == 30


def test_the_number_of_queries_stays_the_same(client, session, django_assert_max_num_queries):
    for number in range(30):
        ended(session, by=build.person(f"p-{number}"), tool=f"shop__{number}")
    with django_assert_max_num_queries(8):
        page = client.get("/approvals/insight/")
    assert len(page.context["tools"]) == 25
    assert "And 5 more, each with fewer." in page.content.decode()


def test_only_so_many_are_read_and_that_is_said(client, session, monkeypatch):
    monkeypatch.setattr(insight, "AT_MOST", 2)
    for _ in range(3):
        ended(session)
    page = client.get("/approvals/insight/")
    assert page.context["insight"].overall.total == 2
    assert "these are the newest" in page.content.decode()
