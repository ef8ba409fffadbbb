"""Below a path prefix every address is there, and leads to others below it."""

import re

import pytest
from channels.testing import WebsocketCommunicator
from django.test import Client
from django.urls import set_script_prefix

from dexweb.asgi import application
from tests.sessions_app.api import build

ROOT = "/desk"
PAGES = [
    "/sessions/",
    "/sessions/new/",
    "/sessions/refund-desk-1/",
    "/sessions/refund-desk-1/?tab=events",
    "/approvals/",
    "/approvals/i-1/",
    "/agents/",
    "/agents/refund-desk/graph/",
    "/api/docs/",
]


@pytest.fixture
def below(settings):
    settings.FORCE_SCRIPT_NAME = ROOT
    set_script_prefix(f"{ROOT}/")
    yield
    set_script_prefix("/")


@pytest.mark.django_db
@pytest.mark.parametrize("path", PAGES)
def test_every_address_of_a_page_is_below_the_prefix(below, path):
    client = Client(SCRIPT_NAME=ROOT)
    client.force_login(build.person("ann", *build.OPERATE, keys=("refunds.approve",)))
    build.interrupt(build.session(waiting=1))
    response = client.get(path)
    assert response.status_code == 200
    page = response.content.decode()
    addresses = re.findall(r'(?:href|src|action|hx-get|hx-post|data-[\w-]+)="(/[^"/][^"]*)"', page)
    assert addresses
    assert [one for one in addresses if not one.startswith((f"{ROOT}/", "/static/"))] == []
    assert f'data-root="{ROOT}/"' in page


@pytest.mark.django_db
def test_signing_in_stays_below_the_prefix(below):
    user = build.person("ann", *build.LOOK)
    user.set_password("correct horse battery")
    user.save()
    client = Client(SCRIPT_NAME=ROOT)
    asked = client.get("/sessions/")
    assert asked["Location"].startswith(f"{ROOT}/accounts/login/?next={ROOT}/sessions/")
    form = {"username": "ann", "password": "correct horse battery"}
    assert client.post("/accounts/login/", form)["Location"] == f"{ROOT}/sessions/"


@pytest.mark.parametrize("path", ["/desk/ws/sessions", "/ws/sessions"])
@pytest.mark.django_db(transaction=True)
async def test_a_socket_is_there_with_the_prefix_and_without(below, path):
    socket = WebsocketCommunicator(application, path)
    connected, _ = await socket.connect()
    assert connected
    # Found, so it asks who one is; an unknown address closes with 4404.
    assert (await socket.receive_output())["code"] == 4401
