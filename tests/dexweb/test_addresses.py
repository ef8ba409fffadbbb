"""Every address there is, and what it takes to get in: nothing is open by being forgotten."""

from collections.abc import Iterator

import pytest
from django.urls import URLPattern, URLResolver, get_resolver

from tests.sessions_app.api import build

pytestmark = pytest.mark.django_db

OPEN = {"healthz", "healthz/", "readyz", "readyz/", "accounts/login/", "accounts/logout/"}
# For everybody who is signed in, since it holds nothing of anybody.
SIGNED_IN = {"", "api/docs/", "api/schema/"}
VALUES = {
    "session_id": "refund-desk-1",
    "interrupt_id": "i-1",
    "step_id": "RunModel-1",
    "message_id": "m-1",
    "name": "refund-desk",
}


def patterns(resolver: URLResolver, before: str = "") -> Iterator[str]:
    for pattern in resolver.url_patterns:
        route = f"{before}{pattern.pattern}"
        if isinstance(pattern, URLPattern):
            yield route
        elif not route.startswith("admin/"):
            yield from patterns(pattern, route)


def filled(route: str) -> str:
    for name, value in VALUES.items():
        for kind in ("slug", "name"):
            route = route.replace(f"<{kind}:{name}>", value)
    return route


ADDRESSES = sorted({filled(route) for route in patterns(get_resolver())})


def answers(client, address: str) -> set[int]:
    posted = client.post(f"/{address}", {}, content_type="application/json")
    return {client.get(f"/{address}").status_code, posted.status_code}


@pytest.fixture(autouse=True)
def rows():
    session = build.session()
    build.interrupt(session)
    build.step(session, "RunModel-1", 1)


def test_the_addresses_of_the_design_are_there():
    for address in (
        "sessions/refund-desk-1/",
        "sessions/new/",
        "approvals/i-1/",
        "agents/refund-desk/graph/",
        "api/v1/sessions/refund-desk-1/snapshot",
        "api/v1/approvals/i-1/decide",
        "api/schema/",
        "api/docs/",
        "healthz",
        "readyz",
        "metrics",
    ):
        assert address in ADDRESSES


def test_the_root_leads_everybody_to_the_sessions(client):
    assert client.get("/")["Location"] == "/sessions/"
    assert client.get("/sessions/")["Location"] == "/accounts/login/?next=/sessions/"


@pytest.mark.parametrize("address", [a for a in ADDRESSES if a not in OPEN])
def test_signed_out_nothing_is_shown_or_done(client, address):
    # 405: no such method here, for anybody; 404: the API has no such address.
    assert answers(client, address) <= {302, 401, 403, 404, 405}
    got = client.get(f"/{address}")
    if got.status_code == 302:
        assert got["Location"].startswith("/accounts/login/?next=") or address == ""


@pytest.mark.parametrize("address", [a for a in ADDRESSES if a not in OPEN | SIGNED_IN])
def test_without_any_permission_nothing_is_shown_or_done(client, address):
    client.force_login(build.person("nobody"))
    # 400: whether one may store a credential depends on whether it is there.
    allowed = {302, 403, 404, 405} | ({400} if "credentials" in address else set())
    assert answers(client, address) <= allowed
    got = client.get(f"/{address}")
    assert got.status_code != 200
    assert b"A refund" not in got.content


@pytest.mark.parametrize("address", [a for a in ADDRESSES if a.startswith("ses")])
def test_who_sees_sessions_only_gets_nothing_of_approvals(client, address):
    """An approval inside a session's page is for who may see approvals."""
    build.step(
        build.session("other"), "AwaitToolApproval-1", 1, status="waiting", type="AwaitToolApproval"
    )
    client.force_login(build.person("sam", "view_session"))
    page = client.get(f"/{address}").content
    assert b"refunds.approve" not in page


@pytest.mark.parametrize("address", ["approvals/", "approvals/i-1/", "api/v1/approvals/i-1/"])
def test_who_sees_approvals_only_sees_no_session(client, address):
    client.force_login(build.person("pat", "view_interrupt"))
    assert client.get(f"/{address}").status_code == 200
    assert client.get("/sessions/refund-desk-1/").status_code == 403


@pytest.mark.parametrize("address", [a for a in ADDRESSES if "RunModel-1" in a or "m-1" in a])
def test_a_name_with_a_nul_is_of_nothing(admin_client, address):
    address = address.replace("RunModel-1", "Run%00Model").replace("m-1", "m%00")
    assert answers(admin_client, address) == {404}
