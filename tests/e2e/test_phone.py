"""390 pixels wide, by thumb: everything fits, and an approval is given without scrolling."""

import re

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.e2e


def fits(page: Page) -> None:
    wide = page.evaluate(
        """() => [...document.querySelectorAll("body *")].filter((element) =>
          element.getBoundingClientRect().right > 391 && !element.closest("svg, .sr, .canvas, pre, .tabs")
        ).map((element) => element.outerHTML.slice(0, 120))"""
    )
    assert page.evaluate("document.documentElement.scrollWidth") <= 390, wide
    assert page.evaluate("innerWidth") == 390, wide


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_no_page_is_wider_than_the_phone(visit, site, dark):
    page = visit("demo", site.start("clerk"), phone=True, dark=dark)
    expect(page.locator("html")).to_have_attribute("data-theme", "dark" if dark else "light")
    expect(page.locator(".ask-bar")).to_be_visible()
    approval = page.locator(".ask-bar").get_attribute("href")
    session = page.url
    for tab in ("graph", "conversation", "timeline", "events", "state"):
        page.goto(f"{session}?tab={tab}")
        expect(page.locator("#live")).to_have_attribute("data-state", "live")
        expect(page.locator(f"#tabs [data-tab={tab}]")).to_be_in_viewport(ratio=0.9)
        expect(page.locator("#session-head .fact").last).to_be_in_viewport(ratio=0.9)
        fits(page)
    for address in (approval, "/sessions/", "/sessions/new/", "/approvals/?state=all", "/agents/"):
        page.goto(address)
        fits(page)


def test_the_bar_of_a_session_leads_to_the_decision_under_the_thumb(visit, site):
    page = visit("demo", site.start("clerk"), phone=True)
    page.locator(".ask-bar").tap()
    expect(page.get_by_role("button", name=re.compile("^Approve"))).to_be_in_viewport(ratio=1)
    fits(page)
    page.get_by_role("button", name=re.compile("^Approve")).tap()
    expect(page.get_by_role("button", name="Yes, approve")).to_be_in_viewport(ratio=1)
    page.get_by_role("button", name="Yes, approve").tap()
    expect(page.locator(".outcome-words")).to_have_text("demo approved it.")
    page.get_by_role("button", name="Back to the session").tap()
    expect(page.locator(".ask-bar")).to_have_count(0)
    expect(page.locator("#session-head .state")).to_have_text("Idle")


def test_on_the_page_of_an_approval_the_buttons_stick_to_the_bottom(visit, site):
    page = visit("demo", site.start("clerk"), phone=True)
    page.goto(page.locator(".ask-bar").get_attribute("href"))
    for button in ("Approve", "Reject"):
        expect(page.get_by_role("button", name=re.compile(f"^{button}"))).to_be_in_viewport(ratio=1)
    page.get_by_role("button", name=re.compile("^Approve")).tap()
    expect(page.get_by_role("button", name="Yes, approve")).to_be_in_viewport(ratio=1)
    page.get_by_role("button", name="Yes, approve").tap()
    expect(page.locator(".outcome-words")).to_have_text("demo approved it.")


def test_what_is_asked_several_times_over_names_its_risk_and_the_bar_waits_for_a_choice(
    visit, site
):
    for _ in range(2):
        session = visit("demo", site.start("pliant"))
        expect(session.locator("form.decide")).to_be_visible()
    page = visit("demo", "/approvals/?agent=pliant&mine=1", phone=True)
    head = page.locator(".twins-head")
    expect(head.locator(".risk")).to_have_text("high")
    expect(head.locator(".risk")).to_be_visible()
    expect(page.locator("[data-batch-bar]")).to_be_hidden()
    head.get_by_role("button", name="Select all").tap()
    expect(page.locator("[data-batch-review]")).to_be_in_viewport(ratio=1)
    page.goto("/approvals/?state=decided")
    expect(page.get_by_role("heading", name="Approvals")).to_be_visible()
    fits(page)


def test_the_last_step_of_a_long_turn_is_within_one_screen_of_the_first(visit, finished):
    page = visit("demo", f"{finished}?tab=graph", phone=True)
    expect(page.locator("#canvas svg .node").last).to_be_attached()
    assert page.evaluate("document.getElementById('canvas').clientHeight < innerHeight")
