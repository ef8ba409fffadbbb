"""No page makes the browser complain: no script error, no breach of the content policy."""

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.e2e

ADMIN = (
    "sessions_app/agent",
    "sessions_app/connection",
    "sessions_app/credential",
    "sessions_app/session",
    "approvals_app/interrupt",
    "approvals_app/permissionkey",
    "approvals_app/notificationchannel",
    "approvals_app/notificationdelivery",
    "auth/user",
    "auth/group",
)


def test_no_page_for_people_makes_the_browser_complain(visit, site):
    page = visit("demo", site.start("clerk"), allow=("status of 404",))
    expect(page.locator("form.decide")).to_be_visible()
    session, approval = page.url, page.locator("form.decide").get_attribute("action")
    for tab in ("conversation", "timeline", "events", "state", "graph"):
        page.locator(f"#tabs [data-tab={tab}]").click()
        expect(page.locator("#work")).to_have_attribute("data-tab", tab)
    page.locator("#step-RunModel-1").click()
    expect(page.locator("#side-panel h3").first).to_be_visible()
    for address in (
        "/sessions/",
        "/sessions/?status=running&q=a",
        "/sessions/new/",
        "/agents/",
        "/account/notifications/",
    ):
        page.goto(address)
    for address in (approval, "/approvals/", "/approvals/?state=all", "/approvals/nothing/"):
        page.goto(address)
    page.goto(f"{session}?dialog=stop")
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.locator("#help")).to_be_visible()


def test_the_admin_site_does_not_make_the_browser_complain(visit, site):
    # Superusers see every page of it.
    site.manage("shell", "--no-imports", "-c", SUPERUSER)
    page = visit("root", "/admin/")
    for model in ADMIN:
        page.goto(f"/admin/{model}/")
        expect(page.locator("#content")).to_be_visible()
        first = page.locator("#result_list tbody th a").first
        if first.count():
            first.click()
            expect(page.locator("#content")).to_be_visible()
        page.goto(f"/admin/{model}/")
        add = page.locator(".addlink").first
        if add.count():
            add.click()
            expect(page.locator("#content form").first).to_be_visible()


def test_the_description_of_the_api_does_not_make_the_browser_complain(visit):
    page = visit("demo", "/api/docs/")
    operation = page.locator(".opblock").first
    operation.locator(".opblock-summary-control").first.click()
    expect(operation.locator(".opblock-body")).to_be_visible()


SUPERUSER = """
from django.contrib.auth.models import User
demo = User.objects.get(username="demo")
User.objects.get_or_create(
    username="root", defaults={"is_superuser": True, "is_staff": True, "password": demo.password}
)
"""
