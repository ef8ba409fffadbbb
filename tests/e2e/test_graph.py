"""The drawing of a session's turns: seen from the first paint on, and what selecting does to it."""

import re

import pytest
from playwright.sync_api import Page, Request, Route, expect

from tests.e2e.conftest import approve

pytestmark = pytest.mark.e2e

# When there is something to paint.
THEME_AT_FIRST = """new MutationObserver((_, me) => {
  if (!document.body) return;
  me.disconnect();
  window.themeAtFirst = document.documentElement.dataset.theme;
}).observe(document, { childList: true, subtree: true });"""
# The colours of the edges, and of the ground that they are on.
COLOURS = """() => {
  const ground = getComputedStyle(document.querySelector(".middle")).backgroundColor;
  const edges = [...document.querySelectorAll("#strip .edge path")].map((edge) => {
    const { stroke, opacity, visibility } = getComputedStyle(edge);
    return edge.getTotalLength() > 1 && opacity === "1" && visibility === "visible" ? stroke : "unseen";
  });
  return [ground, [...new Set(edges)]];
}"""
# Where the nodes lie in the drawing.
PLACES = """() => [...document.querySelectorAll("#strip .node")].map((node) => {
  const { x, y } = node.getBBox();
  return [node.id, x, y];
})"""


def colours(page: Page) -> tuple[str, str]:
    """Of the ground and of the edges, which all have one."""
    ground, edges = page.evaluate(COLOURS)
    assert len(edges) == 1 and edges[0] not in (ground, "none", "unseen"), (ground, edges)
    return ground, edges[0]


def test_edges_are_seen_before_any_script_of_the_page_and_after_a_change_of_theme(visit, finished):
    # In a browser of its own, since that would remember the theme for other tests.
    page = visit("viewer", dark=True)
    page.add_init_script(THEME_AT_FIRST)
    held: list[Route] = []
    page.route("**/session-page*.js", lambda route: held.append(route))
    page.goto(finished, wait_until="commit")
    page.wait_for_function("() => performance.getEntriesByType('paint').length")
    assert page.evaluate("window.themeAtFirst") == "dark"
    dark = colours(page)
    expect(page.locator("#session")).not_to_have_class(re.compile("scripted"))
    held[0].continue_()
    page.unroute("**/session-page*.js")
    expect(page.locator("#session")).to_have_class(re.compile("scripted"))
    assert colours(page) == dark

    switch = page.locator("[data-theme-switch]").first
    switch.click()
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    light = colours(page)
    assert set(light).isdisjoint(dark)
    page.reload()
    assert page.evaluate("window.themeAtFirst") == "light"
    assert colours(page) == light
    switch.click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert colours(page) == dark


def test_a_click_dims_the_rest_and_stays_while_what_is_selected_by_itself_does_not_dim(visit, site):
    page = visit("demo", site.start("clerk"))
    strip, chosen = page.locator("#strip"), page.locator("#strip .node.sel")
    expect(chosen).to_have_id("step-AwaitToolApproval-1")
    expect(strip).not_to_have_class(re.compile("dimmed"))
    approval = page.locator("form.decide").get_attribute("action").removesuffix("decide/")
    before = page.evaluate(PLACES)
    asked: list[Request] = []
    page.on("request", lambda request: "/graph/" in request.url and asked.append(request))

    page.locator("#step-RunModel-1").click()
    expect(chosen).to_have_id("step-RunModel-1")
    expect(strip).to_have_class(re.compile("dimmed"))
    expect(page.locator("#step-AwaitMessage-1")).to_have_css("opacity", "0.38")
    expect(chosen).to_have_css("opacity", "1")
    expect(page.locator("#side .side-title")).to_contain_text("RunModel-1")
    assert (page.evaluate(PLACES), asked) == (before, [])

    approve(visit("ada", approval))
    expect(page.locator("#session-head .state")).to_have_text("Idle")
    expect(page.locator("#step-RunModel-2")).to_have_class(re.compile(r"\bs-ok\b"))
    expect(chosen).to_have_id("step-RunModel-1")
    expect(strip).to_have_class(re.compile("dimmed"))
    page.locator("#canvas").click(position={"x": 5, "y": 300})
    expect(strip).not_to_have_class(re.compile("dimmed"))
    expect(chosen).to_have_id("step-RunModel-1")


def test_the_newest_step_stays_in_view_and_the_panel_goes_on_with_it(visit, site):
    page = visit("demo", site.start("follower"))
    page.set_viewport_size({"width": 1440, "height": 640})
    page.locator("#side").get_by_role("button", name=re.compile("^Approve")).click()
    expect(page.locator("#side .outcome-words")).to_have_text("demo approved it.")
    expect(page.locator("#step-CallTool-1")).to_have_class(re.compile(r"\bs-run\b"))
    expect(page.locator("#step-CallTool-1")).to_be_in_viewport(ratio=0.9)
    expect(page.locator("#side .side-title")).to_contain_text("CallTool-1")
    expect(page.locator("#strip")).not_to_have_class(re.compile("dimmed"))


def test_a_drawing_that_a_person_has_scrolled_and_a_step_that_they_chose_stay(visit, site):
    page = visit("demo", site.start("follower"))
    page.set_viewport_size({"width": 1440, "height": 640})
    address = page.url
    approval = page.locator("form.decide").get_attribute("action").removesuffix("decide/")
    page.locator("#canvas").hover(position={"x": 5, "y": 300})
    page.mouse.wheel(0, -500)
    other = visit("demo", f"{address}#step-RunModel-1")
    other.set_viewport_size({"width": 1440, "height": 640})
    expect(other.locator("#side .side-title")).to_contain_text("RunModel-1")
    page.evaluate("window.left = document.getElementById('canvas').scrollTop")

    ada = visit("ada", approval)
    ada.get_by_role("button", name=re.compile("^Approve")).click()
    for one in (page, other):
        expect(one.locator("#step-CallTool-1")).to_have_class(re.compile(r"\bs-run\b"))
    expect(page.locator("#side .side-title")).to_contain_text("CallTool-1")
    expect(page.locator("#step-CallTool-1")).not_to_be_in_viewport()
    assert page.evaluate("document.getElementById('canvas').scrollTop === window.left")
    expect(other.locator("#side .side-title")).to_contain_text("RunModel-1")


def test_on_a_phone_nothing_is_dimmed_behind_the_panel(visit, finished):
    page = visit("viewer", finished, phone=True)
    page.locator("#step-RunModel-1").tap()
    expect(page.locator("#side")).to_have_class(re.compile("open"))
    page.get_by_role("button", name="Back to the session").tap()
    expect(page.locator("#step-RunModel-1")).to_have_class(re.compile(r"\bsel\b"))
    expect(page.locator("#step-AwaitMessage-1")).to_have_css("opacity", "1")
