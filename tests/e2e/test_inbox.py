"""The inbox in the browser: lines that stay where they are, several decided together, by key and thumb."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import approve

pytestmark = pytest.mark.e2e


def twins(visit, site, count: int, name: str = "demo", **options) -> Page:
    """``count`` approvals of the clerk, all alike, and the inbox that shows nothing else."""
    for _ in range(count):
        session = visit("demo", site.start("clerk"))
        expect(session.locator("form.decide")).to_be_visible()
    page = visit(name, "/approvals/?agent=clerk&mine=1", **options)
    expect(page.locator(".twins-head")).to_contain_text("× store__issue_refund")
    return page


def test_a_batch_tells_of_the_one_that_somebody_else_decided_meanwhile(visit, site):
    demo = twins(visit, site, 2)
    head = demo.locator(".twins-head")
    head.get_by_role("button", name="Select all").click()
    lines = demo.locator("[data-pick]:checked")
    count = lines.count()
    first = lines.first.get_attribute("value")
    demo.get_by_role("button", name=f"Review {count}").click()
    expect(demo.locator(".batch-item")).to_have_count(count)
    expect(demo.locator(".batch-item .args").first).to_contain_text("A-1120")

    ada = visit("ada", f"/approvals/{first}/")
    approve(ada)
    expect(ada.locator(".outcome-words")).to_have_text("ada approved it.")

    approve(demo)
    refused = demo.locator(f".result[data-id='{first}']")
    expect(refused).to_contain_text("Refused")
    expect(refused).to_contain_text("already approved by ada")
    expect(demo.locator(".result[data-ok]")).to_have_count(count - 1)
    demo.get_by_role("link", name="Back to the inbox").click()
    expect(demo.get_by_role("heading", name="Approvals")).to_be_visible()
    expect(demo.get_by_role("button", name=re.compile("^Review [0-9]"))).to_have_count(0)


def test_what_is_selected_on_one_page_and_the_next_is_decided_with_a_result_for_each(visit, site):
    session = visit("demo", site.start("pair"))
    expect(session.locator("form.decide")).to_be_visible()
    page = visit("demo", "/approvals/?agent=pair&limit=1")
    chosen = []
    for number in range(2):
        if number:
            page.locator("a[rel=next]").click()
            expect(page.locator(f"[data-row='{chosen[0]}']")).to_have_count(0)
        box = page.locator("[data-pick]")
        expect(box).to_have_count(1)
        chosen.append(box.get_attribute("value"))
        box.check()
    page.get_by_role("button", name="Review 2").click()
    expect(page.locator(".batch-item")).to_have_count(2)
    page.get_by_role("button", name=re.compile("^Approve 2")).click()
    results = page.locator(".result[data-ok]")
    expect(results).to_have_count(2)
    ids = [results.nth(n).get_attribute("data-id") for n in range(2)]
    assert sorted(ids) == sorted(chosen)


def test_the_second_step_of_a_batch_shows_what_is_ticked_and_no_more(visit, site):
    chosen = []
    for _ in range(2):
        form = visit("demo", site.start("clerk")).locator("form.decide")
        expect(form).to_be_visible()
        chosen.append(form.get_attribute("action").rstrip("/").split("/")[-2])
    page = visit("demo", "/approvals/batch/?" + "&".join(f"id={one}" for one in chosen))
    shown = page.locator(".sure li:visible")
    page.locator("[data-batch-in]").first.uncheck()
    page.get_by_role("button", name=re.compile("^Approve 1")).click()
    expect(shown).to_have_count(1)
    expect(shown.locator(".args")).to_contain_text("A-1120")
    page.get_by_role("button", name="Not yet").click()

    page.locator("[data-batch-in]").first.check()
    page.get_by_role("button", name=re.compile("^Approve 2")).click()
    expect(shown).to_have_count(2)
    page.get_by_role("button", name="Yes, approve").click()
    expect(page.locator(".result[data-ok]")).to_have_count(2)


def test_twins_that_change_keep_their_differences_marked(visit, site):
    session = visit("demo", site.start("pair"))
    expect(session.locator("form.decide")).to_be_visible()
    page = visit("demo", "/approvals/?agent=pair")
    expect(page.locator(".twins-head")).to_contain_text("differs in amount")
    page.locator(".twins-fold").click()
    row = page.locator("[data-row]:has(mark)").last
    words = row.locator(".differences").inner_text()
    name = row.get_attribute("data-row")
    ada = visit("ada", f"/approvals/{name}/")
    ada.get_by_role("button", name=re.compile("on it", re.IGNORECASE)).first.click()
    changed = page.locator(f"[data-row='{name}']")
    expect(changed).to_contain_text("ada is looking at it")
    expect(changed.locator(".differences")).to_have_text(words)
    expect(page.locator(".twins-fold input")).to_be_checked()


def test_by_key_a_line_is_selected_and_opened_and_never_decided_from_the_list(visit, site):
    page = twins(visit, site, 2)
    page.keyboard.press("j")
    page.keyboard.press("o")
    expect(page.locator("[data-pick]").first).to_be_visible()
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(page.get_by_role("button", name="Review 1")).to_be_enabled()
    page.reload()
    expect(page.get_by_role("button", name="Review 1")).to_be_enabled()
    page.keyboard.press("j")
    page.keyboard.press("o")
    page.keyboard.press("j")
    page.keyboard.press("a")
    page.wait_for_url(re.compile(r"/approvals/[^/?]+/$"))
    expect(page.get_by_role("button", name=re.compile("^Approve"))).to_be_visible()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_with_one_thumb_several_are_reviewed_and_nothing_is_wider_than_the_phone(visit, site, dark):
    page = twins(visit, site, 2, phone=True, dark=dark)
    page.get_by_role("button", name="Select all").tap()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.get_by_role("button", name=re.compile("^Review")).tap()
    expect(page.get_by_role("button", name=re.compile("^Reject"))).to_be_in_viewport()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.goto("/delegations/")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_line_that_changes_stays_where_it_is_and_keeps_its_tick(visit, site):
    page = twins(visit, site, 2)
    page.locator(".twins-fold").click()
    row = page.locator("[data-row]:has([data-pick])").first
    row.locator("[data-pick]").check()
    name = row.get_attribute("data-row")
    ada = visit("ada", f"/approvals/{name}/")
    ada.get_by_role("button", name=re.compile("on it", re.IGNORECASE)).first.click()
    held = page.locator(f"[data-row='{name}']")
    expect(held).to_contain_text("ada is looking at it")
    expect(held.locator("[data-pick]")).to_be_checked()
