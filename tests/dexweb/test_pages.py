"""The frame of every page: sign-in, caching, scripts, errors and the count of what waits."""

import re

import pytest
from django.contrib.staticfiles import finders
from django.test import Client

from tests.sessions_app.api import build

pytestmark = pytest.mark.django_db
PAGES = ["/sessions/", "/sessions/new/", "/approvals/", "/approvals/i-1/", "/agents/", "/workers/"]


@pytest.fixture
def ann():
    user = build.person("ann", *build.OPERATE, keys=("refunds.approve",))
    user.set_password("correct horse battery")
    user.save()
    return user


@pytest.fixture
def signed_in(client, ann):
    client.force_login(ann)
    return client


@pytest.mark.parametrize("path", PAGES)
def test_a_page_asks_who_you_are_first(client, path):
    response = client.get(path)
    assert response.status_code == 302
    assert response["Location"].startswith("/accounts/login/?next=")


def test_signing_in_leads_to_where_one_wanted_to_go(client, ann):
    form = {"username": "ann", "password": "correct horse battery", "next": "/approvals/"}
    assert client.post("/accounts/login/", form)["Location"] == "/approvals/"


def test_a_wrong_password_keeps_the_name_and_says_so(client, ann):
    response = client.post("/accounts/login/", {"username": "ann", "password": "no"})
    assert 'value="ann"' in response.content.decode()
    assert 'role="alert"' in response.content.decode()


def test_signing_out_is_a_post(signed_in):
    assert signed_in.get("/accounts/logout/").status_code == 405
    assert signed_in.post("/accounts/logout/").status_code == 302
    assert signed_in.get("/sessions/").status_code == 302


@pytest.mark.parametrize("path", PAGES)
def test_no_page_with_content_is_kept_for_after_signing_out(signed_in, path):
    build.interrupt(build.session())
    response = signed_in.get(path)
    assert response["Cache-Control"] == "no-store"
    assert 'hx-history="false"' in response.content.decode()


@pytest.mark.parametrize("path", [*PAGES, "/accounts/login/"])
def test_pages_hold_no_inline_script_or_style(client, ann, path):
    build.interrupt(build.session(waiting=1))
    if "login" not in path:
        client.force_login(ann)
    page = client.get(path).content.decode()
    assert not re.search(r"<script(?![^>]*\bsrc=)", page)
    assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", page)


def test_everything_a_page_links_to_is_there(signed_in):
    page = signed_in.get("/sessions/").content.decode()
    for name in re.findall(r'(?:src|href)="/static/([^"]+)"', page):
        assert finders.find(name), name


def test_the_theme_is_set_before_anything_is_drawn(signed_in):
    head = signed_in.get("/sessions/").content.decode().partition("</head>")[0]
    script = re.search(r"<script[^>]*theme\.js[^>]*>", head).group()
    assert "defer" not in script
    assert "module" not in script
    assert head.index("theme.js") < head.index('rel="stylesheet"')


def test_the_frame_counts_what_waits_for_this_person(signed_in):
    session = build.session()
    build.interrupt(session, "mine")
    build.interrupt(session, "others", permission="mail.send")
    build.interrupt(session, "over", state="approved")
    page = signed_in.get("/agents/").content.decode()
    assert re.search(r'id="pending-approvals"[^>]*>1<', page)


def test_a_fragment_for_somebody_signed_out_is_a_notice_that_replaces_nothing(client):
    build.interrupt(build.session())
    headers = {"HX-Request": "true"}
    response = client.get("/approvals/i-1/panel/", headers=headers, follow=True)
    assert response.status_code == 401
    assert response["HX-Retarget"] == "#notices"
    assert "<html" not in response.content.decode()


def test_a_page_made_for_somebody_else_is_answered_with_a_notice(signed_in, ann):
    build.interrupt(build.session())

    def answer(person: str) -> int:
        headers = {"HX-Request": "true", "X-Dexweb-Person": person}
        return signed_in.get("/approvals/i-1/panel/", headers=headers).status_code

    assert answer(str(ann.pk)) == 200
    assert answer(str(ann.pk + 1)) == 401


def test_an_expired_form_keeps_what_was_typed_and_offers_to_sign_in(ann):
    client = Client(enforce_csrf_checks=True)
    client.force_login(ann)
    response = client.post("/sessions/new/", {"message": "A long <b>text</b>", "agent": "x"})
    page = response.content.decode()
    assert response.status_code == 403
    assert "A long &lt;b&gt;text&lt;/b&gt;" in page
    assert "/accounts/login/" in page


def test_an_address_that_leads_nowhere_says_so_in_our_look(signed_in):
    response = signed_in.get("/nowhere/")
    assert response.status_code == 404
    assert "There is nothing here" in response.content.decode()
    assert "app.css" in response.content.decode()


def test_a_refused_fragment_is_no_page(signed_in):
    response = signed_in.get("/approvals/none/panel/", headers={"HX-Request": "true"})
    assert response.status_code == 404
    assert "<html" not in response.content.decode()


def test_an_error_of_ours_has_a_page_that_needs_nothing(client, rf):
    from django.views.defaults import server_error

    response = server_error(rf.get("/"))
    assert response.status_code == 500
    assert "Something broke on our side" in response.content.decode()
