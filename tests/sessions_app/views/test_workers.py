"""Pools and workers, on the page and over REST."""

from datetime import timedelta

import pytest
from django.utils import timezone

from sessions_app.models import WorkerPresence
from tests.sessions_app.api import build

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def no_engine(settings):
    settings.DEXWEB_TEMPORAL_ADDRESS = "127.0.0.1:1"


@pytest.fixture(autouse=True)
def nobody_else(db):
    """Tests on the engine have a worker that stands, and reports itself whenever it likes."""
    WorkerPresence.objects.all().delete()


@pytest.fixture
def ann():
    return build.person("ann", *build.LOOK)


@pytest.fixture
def page(client, ann):
    client.force_login(ann)

    def read(**headers):
        response = client.get("/workers/", headers=headers)
        assert response.status_code == 200
        return response.content.decode()

    return read


def worker(name="1@box", pool="default", silent_for=0, **changes):
    now = timezone.now()
    values = {"model_slots": 10, "model_used": 4, "tool_slots": 20, "tool_used": 0}
    return WorkerPresence.objects.create(
        id=name,
        pool=pool,
        host="box",
        pid=7,
        version="1.2.3",
        started_at=now - timedelta(hours=1),
        seen_at=now - timedelta(seconds=silent_for),
        **{**values, **changes},
    )


def test_a_pool_shows_its_workers_and_what_they_have_free(page):
    build.agent()
    worker()
    worker("2@box")
    shown = page()
    assert "2 workers" in shown
    assert "12 of 20 slots free" in shown
    assert "40 of 40 slots free" in shown
    assert "1.2.3" in shown


def test_a_pool_that_an_agent_names_and_nobody_serves_is_shown_with_what_to_do(page):
    build.agent("desk", pool="gpu")
    shown = page()
    assert "No worker serves the pool “gpu”" in shown
    assert "manage.py worker --pool gpu" in shown


def test_a_pool_that_only_a_tool_names_is_missed_too(page):
    worker()
    build.agent().tools.create(pattern="shop__print", pool="printers")
    assert "No worker serves the pool “printers”" in page()


@pytest.mark.parametrize("change", [{"silent_for": 60}, {"stopping": True}])
def test_a_worker_that_is_silent_or_stopping_serves_nobody(page, change):
    build.agent()
    worker(**change)
    shown = page()
    assert "No worker serves the pool “default”" in shown
    assert "process 7" in shown


def test_a_worker_that_is_gone_for_long_is_not_shown(page):
    worker(silent_for=3600)
    assert "process 7" not in page()


def test_it_says_so_while_the_engine_is_away(page):
    worker()
    shown = page()
    assert "The engine does not answer" in shown
    assert "waiting: not known" in shown


def test_it_refreshes_itself_without_the_frame(page):
    assert 'hx-trigger="every 5s"' in page()
    part = page(**{"HX-Request": "true"})
    assert part.startswith('<div class="pools"')


def test_the_step_that_waits_longest_is_named_under_the_pool_that_its_tool_needs(page, ann):
    build.agent("refund-desk")
    session = build.session()
    now = timezone.now()
    for number, minutes in ((1, 5), (2, 9)):
        step_id = f"CallTool-{number}"
        session.steps.create(
            step_id=step_id,
            type="CallTool",
            status="scheduled",
            position=50 + number,
            call_id=step_id,
            tool="shop__print",
            scheduled_at=now - timedelta(minutes=minutes),
        )
        session.calls.create(
            call_id=step_id,
            model_step="RunModel-1",
            turn=1,
            position=number,
            tool="shop__print",
            effect="read",
            args="{}",
            args_hash="0",
            policy={"pool": "printers"},
            requested_at=now,
        )
    pools = build.client_of(ann).get("/api/v1/workers").json()["pools"]
    found = next(pool for pool in pools if pool["name"] == "printers")
    assert found["missing"]
    assert found["oldest_waiting"]["step_id"] == "CallTool-2"


def test_the_same_over_rest(ann):
    build.agent()
    worker()
    answer = build.client_of(ann).get("/api/v1/workers").json()
    assert answer["engine_away"]
    (pool,) = answer["pools"]
    assert pool["model_slots"] == {"used": 4, "free": 6, "total": 10}
    assert pool["backlog"] is None
    assert [row["id"] for row in pool["workers"]] == ["1@box"]


def test_what_waits_is_asked_of_the_engine(ann, settings, temporal_engine):
    settings.DEXWEB_TEMPORAL_ADDRESS = temporal_engine.address
    worker(pool="quiet")
    answer = build.client_of(ann).get("/api/v1/workers").json()
    assert not answer["engine_away"]
    assert answer["pools"][0]["backlog"]["flow"] == {"waiting": 0, "oldest": 0.0}


def test_it_needs_the_permission_to_look(client):
    nobody = build.person("nobody")
    client.force_login(nobody)
    assert client.get("/workers/").status_code == 403
    assert build.client_of(nobody).get("/api/v1/workers").status_code == 403


def test_the_number_of_queries_is_fixed(ann, django_assert_max_num_queries):
    client = build.client_of(ann)
    for number in range(15):
        build.agent(f"agent-{number}", pool=f"pool-{number}")
        worker(f"{number}@box", f"pool-{number}")
    with django_assert_max_num_queries(10):
        client.get("/api/v1/workers")
