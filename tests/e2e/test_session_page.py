"""One session's page: what has an address, what stays on screen, and the panel at the side."""

import re

import pytest
from playwright.sync_api import Route, expect

pytestmark = pytest.mark.e2e

REFUSED = """for (const name of ["localStorage", "sessionStorage"]) {
  Object.defineProperty(window, name, { get() { throw new DOMException("refused", "SecurityError"); } });
}"""


def test_a_tab_and_what_is_selected_have_an_address_for_reloads_and_for_others(visit, finished):
    page = visit("demo", finished)
    page.locator("#tabs [data-tab=timeline]").click()
    page.locator("#timeline [data-step-link=RunModel-2]").click()
    expect(page.locator("#side h2")).to_have_text("RunModel-2")

    page.reload()
    for one in (page, visit("ada", page.url)):
        expect(one.locator("#tabs [aria-current]")).to_have_text("Timeline")
        expect(one.locator("#timeline")).to_be_visible()
        expect(one.locator("#side h2")).to_have_text("RunModel-2")

    page.locator("#tabs [data-tab=events]").click()
    event = page.locator("#events [data-seq='7']")
    event.locator("a.seq").click()
    expect(event).to_have_class(re.compile(r"\bsel\b"))
    page.reload()
    for one in (page, visit("ada", page.url)):
        event = one.locator("#events [data-seq='7']")
        expect(event).to_have_class(re.compile(r"\bsel\b"))
        expect(event.locator("pre")).to_be_visible()


def test_a_step_stays_on_screen_until_the_next_is_there_and_the_last_choice_wins(visit, finished):
    page = visit("demo", f"{finished}?tab=timeline#step-RunModel-1")
    side = page.locator("#side")
    expect(side.locator("h2")).to_have_text("RunModel-1")
    held: list[Route] = []
    page.route("**/steps/RunModel-2/", lambda route: held.append(route))
    with page.expect_request("**/steps/RunModel-2/"):
        page.locator("#timeline [data-step-link=RunModel-2]").click()
    expect(side).to_have_attribute("aria-busy", "true")
    expect(side.locator("h2")).to_have_text("RunModel-1")

    page.locator("#timeline [data-step-link=CallTool-3]").click()
    expect(side.locator("h2")).to_have_text("CallTool-3")
    with page.expect_response("**/steps/RunModel-2/") as late:
        held[0].continue_()
    late.value.finished()
    # What is made of the late answer is made of it by then.
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
    expect(side.locator("h2")).to_have_text("CallTool-3")


def test_a_step_leads_by_its_causes_back_to_the_message_that_the_turn_began_with(visit, finished):
    page = visit("demo", f"{finished}#step-RunModel-2")
    side = page.locator("#side")
    causes = side.locator("dt:text-is('Caused by') + dd")
    for caused_by in ("ResumeTurn-1", "CallTool-1", "RunModel-1", "AwaitMessage-1"):
        causes.get_by_role("link", name=caused_by, exact=True).click()
        expect(side.locator("h2")).to_have_text(caused_by)
    expect(causes).to_have_count(0)
    page.go_back()
    expect(side.locator("h2")).to_have_text("RunModel-1")


def test_the_panels_width_is_set_by_key_within_bounds_and_remembered(visit, finished):
    # In a browser of its own, since that would remember it for other tests.
    page = visit("viewer", finished, dark=True)
    grip = page.get_by_role("separator", name="Width of the panel")

    def width() -> int:
        return round(page.locator("#side").bounding_box()["width"])

    grip.press("Home")
    grip.press("ArrowLeft")
    expect(grip).to_have_attribute("aria-valuenow", "640")
    assert width() == 640
    grip.press("End")
    grip.press("ArrowRight")
    expect(grip).to_have_attribute("aria-valuenow", "280")
    grip.press("ArrowLeft")
    page.reload()
    expect(grip).to_have_attribute("aria-valuenow", "304")
    assert width() == 304


def test_where_the_browser_refuses_storage_the_pages_work_for_as_long_as_they_are_open(
    visit, finished
):
    page = visit("viewer")
    page.add_init_script(REFUSED)
    page.goto(finished)
    grip = page.get_by_role("separator", name="Width of the panel")
    grip.press("End")
    expect(grip).to_have_attribute("aria-valuenow", "280")
    page.locator("#strip .node").first.click()
    expect(page.locator("#side h2")).to_have_text("AwaitMessage-1")
    theme = page.locator("[data-theme-switch]").first
    for choice in ("light", "dark"):
        theme.click()
        expect(page.locator("html")).to_have_attribute("data-theme", choice)
    page.goto("/approvals/")
    expect(page.get_by_role("heading", name="Approvals")).to_be_visible()
