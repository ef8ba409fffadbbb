"""What the panel of a Step and the State tab say of times, failures and what is missing."""

from datetime import timedelta

import pytest

from sessions_app.detail import timeline
from sessions_app.models import Turn
from tests.sessions_app.api import build

pytestmark = pytest.mark.django_db


def after(seconds):
    return build.NOON + timedelta(seconds=seconds)


@pytest.fixture
def reader(client):
    client.force_login(build.person("ann", *build.LOOK))
    return client


def panel(client, of, step_id):
    response = client.get(f"/sessions/{of.pk}/steps/{step_id}/")
    assert response.status_code == 200
    return response.content.decode()


def test_arguments_that_were_never_recorded_are_said_to_be(reader):
    session = build.session()
    build.step(session, "CallTool-1", 1, call_id="c-1", tool="shop__lookup")
    page = panel(reader, session, "CallTool-1")
    assert "The arguments of this call were never recorded." in page
    assert "refusal" not in page


def test_a_value_that_is_not_there_leaves_no_empty_block(reader):
    session = build.session()
    build.call(session, "c-1", '{"order_id": "A-1"}', effect="read")
    build.step(session, "CallTool-1", 1, status="active", call_id="c-1", tool="shop__lookup")
    page = panel(reader, session, "CallTool-1")
    assert "Arguments" in page
    assert "What the model was told" not in page
    assert "Reasoning" not in page


def test_a_failed_step_shows_what_went_wrong_in_full(reader):
    session = build.session()
    why = "429 Too Many Requests (rate_limit_exceeded): wait\nand try again"
    build.step(session, "RunModel-1", 1, status="failed", outcome="failed", detail=why, attempt=3)
    page = panel(reader, session, "RunModel-1")
    assert "429 Too Many Requests (rate_limit_exceeded): wait\nand try again" in page
    assert "Failed" in page
    assert "<dt>Attempt</dt><dd>3</dd>" in page


def test_the_wait_of_a_gated_call_ends_when_the_tool_starts(reader):
    """Asked at 0 s, approved at 60 s, started at 62 s, done at 70 s."""
    session = build.session()
    Turn.objects.create(session=session, number=1, started_at=build.NOON)
    build.call(session, "c-1", "{}")
    shared = {"call_id": "c-1", "tool": "shop__issue_refund"}
    build.step(session, "AwaitToolApproval-1", 1, started_at=after(0), ended_at=after(60), **shared)
    build.step(
        session,
        "CallSingleAttemptTool-1",
        2,
        scheduled_at=after(60),
        started_at=after(62),
        ended_at=after(70),
        **shared,
    )
    page = panel(reader, session, "CallSingleAttemptTool-1")
    assert "<dt>Waited</dt><dd>2.0 s before it began</dd>" in page
    assert "8.0 s" in page
    gate, call = timeline.page(session, after(100)).turns[0].steps
    assert (gate.bar.ran_from + gate.bar.ran, call.bar.waited_from) == (857, 857)
    assert call.bar.ran_from == 886


def test_every_moment_names_its_zone(reader, settings):
    settings.TIME_ZONE = "Europe/Athens"
    session = build.session()
    build.step(session, "RunModel-1", 1, started_at=after(0), ended_at=after(1))
    assert "2026-03-01 14:00:00 EET" in panel(reader, session, "RunModel-1")
    rows = reader.get("/sessions/").content.decode()
    assert 'datetime="2026-03-01T12:00:00.000+00:00" title="2026-03-01 14:00:00 EET"' in rows


def test_the_state_says_what_limits_the_session_in_time_and_why_it_ended(reader):
    session = build.session(status="failed", closed_at=after(9), close_reason="The shop is shut.")
    page = reader.get(f"/sessions/{session.pk}/?tab=state").content.decode()
    assert "<dt>Time limit</dt><dd>none" in page
    assert "The shop is shut." in page
    assert "2026-03-01 12:00:09 UTC" in page


def test_a_delegation_and_its_child_lead_to_each_other(reader, django_assert_max_num_queries):
    session = build.session(phase="acting")
    child = build.session("refund-desk-1-helper-1", parent=session, title="Look", waiting=1)
    call = build.call(session, "c-1", '{"agent": "helper"}', effect="idempotent")
    call.child = child
    call.save()
    build.step(session, "CallTool-1", 1, status="active", call_id="c-1", tool="delegate")
    there = f'href="/sessions/{child.pk}/"'
    assert there in panel(reader, session, "CallTool-1")
    # While it is at work, the head leads there as well.
    assert there in reader.get(f"/sessions/{session.pk}/head/").content.decode()
    back = f'href="/sessions/{session.pk}/#step-CallTool-1"'
    with django_assert_max_num_queries(14):
        assert back in reader.get(f"/sessions/{child.pk}/head/").content.decode()
