"""The form that starts a session."""

import re
import uuid

import pytest
from django.contrib.auth.models import User

from approvals_app.models import AuditEntry
from sessions_app import actions
from sessions_app.models import Session
from tests.sessions_app.api import build

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator(client):
    client.force_login(build.person("ann", *build.OPERATE))
    return client


@pytest.fixture
def no_engine(settings):
    settings.DEXWEB_TEMPORAL_ADDRESS = "127.0.0.1:1"
    settings.DEXWEB_ENGINE_TIMEOUT = 1.0


def typed(**changes):
    form = {
        "agent": "refund-desk",
        "message": "Please refund A-1042",
        "title": "Late order",
        "request_id": str(uuid.uuid4()),
    }
    return {**form, **changes}


def test_the_form_offers_enabled_agents_with_model_and_tools(operator):
    desk = build.agent("desk", model="demo:script", title="The desk")
    desk.tools.create(pattern="shop__refund")
    desk.connections.create(name="shop", command=["x"])
    build.agent("gone", enabled=False)
    page = operator.get("/sessions/new/").content.decode()
    for part in ("The desk", "demo:script", "shop__refund"):
        assert part in page
    assert 'value="gone"' not in page


def tools_of(page):
    """The tools of the first agent, each with * where it needs approval."""
    listed = page.partition('<span class="choice-tools">')[2].partition("</label>")[0]
    marked = re.sub('<span class="dot act"[^>]*>', "*", listed)
    return re.sub("<[^>]+>", " ", marked).split()


def test_the_form_says_what_holds_for_tools_that_no_pattern_names(operator):
    desk = build.agent("desk")
    shop = desk.connections.create(name="shop", command=["x"])
    assert tools_of(operator.get("/sessions/new/").content.decode()) == ["any", "tool*"]
    desk.tools.create(pattern="shop__look", needs_approval=False)
    shop.tools.create(pattern="shop__refund")
    page = operator.get("/sessions/new/").content.decode()
    assert tools_of(page) == ["shop__look", "shop__refund", "*", "any", "other*"]


def test_the_agents_page_says_all_that_stands_before_a_tool(operator):
    desk = build.agent("desk")
    desk.tools.create(
        pattern="shop__refund", permission="refunds.approve", approve_n=2, deny_m=2,
        four_eyes=True, at_deadline="escalate",
    )  # fmt: skip
    words = re.sub("<[^>]+>", "", operator.get("/agents/").content.decode())
    assert (
        "Needs 2 approvals by refunds.approve within 1 h, else others are asked · medium risk "
        "· four eyes · 2 rejections end it"
    ) in words


def test_sending_it_twice_starts_one_session(operator, temporal_engine):
    build.agent()
    form = typed()
    first = operator.post("/sessions/new/", form)
    second = operator.post("/sessions/new/", form)
    session = Session.objects.get()
    assert (session.title, session.started_by.username) == ("Late order", "ann")
    assert first["Location"] == second["Location"] == f"/sessions/{session.pk}/"
    assert AuditEntry.objects.filter(action="session.started").count() == 1


def test_a_start_that_died_before_it_was_written_down_is_written_down_by_the_next_try(
    operator, temporal_engine
):
    """The Flow makes the session's row as well, so a row is no proof of an entry."""
    agent, form = build.agent(), typed()
    ann = User.objects.get(username="ann")
    session_id = actions.session_id_for(agent, ann, form["request_id"])
    build.session(session_id)
    operator.post("/sessions/new/", form)
    entry = AuditEntry.objects.get(action="session.started")
    assert (entry.session_id, entry.actor_name) == (session_id, "ann")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"message": " \n "}, "Write something for the agent first"),
        ({"message": "x" * 65537}, "the limit is 65,536"),
        ({"agent": ""}, "Choose an agent"),
        ({"agent": "none"}, "not there any more"),
        ({"title": "x" * 201}, "at most 200"),
        ({"request_id": "1"}, "Load it anew"),
    ],
)
def test_a_mistake_is_named_and_what_was_typed_is_kept(operator, change, words):
    build.agent()
    form = typed(**change)
    response = operator.post("/sessions/new/", form)
    page = response.content.decode()
    assert response.status_code == 400
    assert words in page
    assert form["message"].strip() in page
    assert form["title"] in page
    assert not Session.objects.exists()


def test_while_the_engine_is_away_the_text_and_the_request_are_kept(operator, no_engine):
    build.agent()
    form = typed()
    response = operator.post("/sessions/new/", form)
    page = response.content.decode()
    assert response.status_code == 503
    assert response["Retry-After"]
    for part in ('data-code="engine_unavailable"', form["message"], form["request_id"]):
        assert part in page


def test_starting_needs_the_permission_to_operate(client):
    build.agent()
    client.force_login(build.person("vic", *build.LOOK))
    assert client.get("/sessions/new/").status_code == 403
    assert client.post("/sessions/new/", typed()).status_code == 403
    assert not Session.objects.exists()


def test_without_agents_it_says_so(operator):
    assert "No agent is enabled" in operator.get("/sessions/new/").content.decode()
