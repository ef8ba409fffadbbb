"""What people do on a session's page: write, cancel, stop; with the engine there or away."""

import re
import uuid

import pytest

from tests.sessions_app.api import build

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}


@pytest.fixture
def operator(client):
    client.force_login(build.person("olaf", *build.OPERATE))
    return client


@pytest.fixture
def no_engine(settings):
    settings.DEXWEB_TEMPORAL_ADDRESS = "127.0.0.1:1"
    settings.DEXWEB_ENGINE_TIMEOUT = 1.0


def send(client, path, *, htmx=True, **form):
    form.setdefault("request_id", str(uuid.uuid4()))
    return client.post(f"/sessions/refund-desk-1/{path}/", form, headers=HTMX if htmx else {})


@pytest.mark.parametrize("htmx", [True, False])
def test_an_empty_message_is_refused_where_it_was_typed(operator, htmx):
    build.session()
    response = send(operator, "messages", htmx=htmx, text="  ")
    page = response.content.decode()
    assert response.status_code == 400
    assert "Write something for the agent first" in page
    assert ("<!doctype" in page) is not htmx


def test_a_message_that_is_too_long_is_refused_and_kept(operator):
    build.session()
    response = send(operator, "messages", text="long " * 20_000)
    assert response.status_code == 413
    assert "long long" in response.content.decode()


def test_while_the_engine_is_away_the_text_and_the_request_are_kept(operator, no_engine):
    build.session()
    key = str(uuid.uuid4())
    response = send(operator, "messages", text="Hello <b>", request_id=key)
    page = response.content.decode()
    assert response.status_code == 503
    assert response["Retry-After"] == "5"
    assert "Hello &lt;b&gt;" in page
    assert f'name="request_id" value="{key}"' in page
    assert "The engine is away" in page


def test_a_session_that_has_ended_takes_no_message(operator):
    build.session(status="completed")
    response = send(operator, "messages", text="Hello")
    assert response.status_code == 409


@pytest.mark.parametrize("kind", ["terminate", "fail"])
def test_a_forced_end_needs_a_reason_and_says_so_in_the_dialog(operator, kind):
    build.session()
    response = send(operator, "stop", kind=kind, reason=" ")
    page = response.content.decode()
    assert response.status_code == 400
    assert "A reason is needed" in page
    assert re.search(rf'value="{kind}" checked', page)
    assert "stop-form" in page


def test_without_a_script_a_refused_stop_comes_back_with_its_dialog_open(operator):
    build.session()
    response = send(operator, "stop", htmx=False, kind="fail", reason="")
    assert response.status_code == 400
    assert re.search(r'<dialog id="stop-dialog"[^>]* open>', response.content.decode())


def test_the_way_to_stop_has_to_be_named(operator):
    build.session()
    assert send(operator, "stop", kind="explode").status_code == 400


def test_cancel_while_the_engine_is_away_says_so(operator, no_engine):
    build.session(phase="thinking")
    response = send(operator, "cancel-turn")
    assert response.status_code == 503
    assert 'id="session-notice"' in response.content.decode()


@pytest.mark.parametrize("path", ["messages", "cancel-turn", "stop"])
def test_who_may_only_look_can_do_nothing(client, path):
    build.session()
    client.force_login(build.person("ann", *build.LOOK))
    assert send(client, path, text="x", kind="cancel").status_code == 403


@pytest.mark.parametrize("path", ["messages", "cancel-turn", "stop"])
def test_reading_an_address_changes_nothing(operator, path):
    build.session()
    assert operator.get(f"/sessions/refund-desk-1/{path}/").status_code == 405


def test_links_of_a_refused_page_lead_back_to_the_session(operator):
    build.session()
    page = send(operator, "messages", htmx=False, text=" ").content.decode()
    assert not re.search(r'href="\?', page)
    assert 'href="/sessions/refund-desk-1/?tab=events"' in page
