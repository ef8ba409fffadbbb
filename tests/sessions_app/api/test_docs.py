"""The API describes itself."""

import re
from io import StringIO

import pytest
from django.core.management import call_command

from dexweb.engine.errors import BY_CODE
from sessions_app.api.urls import urlpatterns
from tests.sessions_app.api import build

pytestmark = pytest.mark.django_db


def test_the_description_is_complete_and_valid():
    out = StringIO()
    call_command("spectacular", "--fail-on-warn", "--validate", stdout=out)
    for address in ("/sessions/{session_id}/cancel-turn:", "/approvals/{interrupt_id}/decide:"):
        assert f"/api/v1{address}" in out.getvalue()


def test_the_readers_page_brings_all_it_needs_from_here(client):
    client.force_login(build.person("ann"))
    page = client.get("/api/docs/")
    assert page.status_code == 200
    assert "<script>" not in page.content.decode()
    assert "http://" not in page.content.decode()
    assert "'unsafe-inline'" not in page["Content-Security-Policy"]


def test_the_schema_is_served(client):
    client.force_login(build.person("ann"))
    assert client.get("/api/schema/?format=json").json()["info"]["title"] == "Dexweb"


def test_the_documentation_names_every_address_and_every_code(settings):
    page = (settings.BASE_DIR / "docs" / "api.md").read_text()
    for route in (
        pattern.pattern._route for pattern in urlpatterns if getattr(pattern, "name", None)
    ):
        said = (
            re.sub(r"<(?:slug|name|int):(\w+)>", "<id>", route)
            .replace("steps/<id>", "steps/<step id>")
            .replace("queue/<id>", "queue/<message id>")
        )
        assert said in page, route
    for code in set(BY_CODE) - {"error", "incomplete_decision"}:
        assert f"`{code}`" in page, code
