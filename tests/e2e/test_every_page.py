"""No page makes the browser complain: no script error, no breach of the content policy."""

import time

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.e2e

PAGES = (
    "/sessions/",
    "/sessions/?status=running&q=a",
    "/sessions/new/",
    "/agents/",
    "/workers/",
    "/agents/clerk/graph/",
    "/approvals/",
    "/approvals/?state=all",
    "/approvals/insight/",
    "/delegations/",
    "/audit/",
    "/spend/",
    "/account/notifications/",
)
ADMIN = (
    "sessions_app/agent",
    "sessions_app/connection",
    "sessions_app/credential",
    "sessions_app/session",
    "sessions_app/spendbudget",
    "sessions_app/modelprice",
    "approvals_app/interrupt",
    "approvals_app/decision",
    "approvals_app/permissionkey",
    "approvals_app/notificationchannel",
    "auth/user",
    "auth/group",
)


def test_no_page_for_people_makes_the_browser_complain(visit, site):
    page = visit("root", site.start("clerk"), allow=("status of 404",))
    expect(page.locator("form.decide")).to_be_visible()
    session, approval = page.url, page.locator("form.decide").get_attribute("action")
    for tab in ("conversation", "timeline", "events", "state", "graph"):
        page.locator(f"#tabs [data-tab={tab}]").click()
        expect(page.locator("#work")).to_have_attribute("data-tab", tab)
    page.locator("#step-RunModel-1").click()
    expect(page.locator("#side-panel h3").first).to_be_visible()
    for address in (approval, *PAGES):
        answer = page.goto(address)
        assert answer.status == 200, address
    page.goto("/approvals/nothing/")
    page.goto(f"{session}?dialog=stop")
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.locator("#help")).to_be_visible()


@pytest.fixture(scope="module")
def decided(site) -> None:
    """At least one decision to be looked at."""
    site.start("clerk")
    give_up = time.monotonic() + 30
    while not (waiting := site.api("approvals/?state=pending&agent=clerk")["results"]):
        assert time.monotonic() < give_up, "no approval was asked for"
    asked = site.api(f"approvals/{waiting[0]['id']}/")
    site.api(
        f"approvals/{asked['id']}/decide",
        {
            "verdict": "approve",
            "revision": asked["revision"],
            "args_hash": asked["args_hash"],
        },
    )


@pytest.mark.parametrize("model", ADMIN)
def test_the_admin_site_does_not_make_the_browser_complain(visit, decided, model):
    page = visit("root", f"/admin/{model}/")
    first = page.locator("#result_list tbody th a").first
    address = first.get_attribute("href") if first.count() else None
    adds = page.locator(".object-tools .addlink").count()
    if address:
        page.goto(address)
        expect(page.locator("#content h1")).to_be_visible()
    if adds:
        page.goto(f"/admin/{model}/add/")
        expect(page.locator("#content form").first).to_be_visible()
    assert address or adds


def test_the_description_of_the_api_does_not_make_the_browser_complain(visit):
    page = visit("demo", "/api/docs/")
    operation = page.locator(".opblock").first
    operation.locator(".opblock-summary-control").first.click()
    expect(operation.locator(".opblock-body")).to_be_visible()


def test_the_description_of_the_api_follows_the_theme(visit):
    page = visit("demo", "/api/docs/", dark=True)
    title = page.locator("#api-docs .info .title")
    expect(title).to_be_visible()
    colour = "element => getComputedStyle(element).color"
    dark = title.evaluate(colour)
    page.locator("[data-theme-switch]").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    expect(page.locator("html")).not_to_have_class("dark-mode")
    assert title.evaluate(colour) != dark
