"""The list of sessions: what is filtered, and lines that never fall back."""

import re

import pytest
from playwright.sync_api import Page, Route, expect

pytestmark = pytest.mark.e2e

ABOUT_LINES = re.compile("[?&]rows=")


def rows(page: Page) -> list[str]:
    return page.locator("[data-row]").evaluate_all("all => all.map(row => row.dataset.row)")


def test_a_filter_changes_nothing_until_it_is_sent_and_says_in_words_what_is_filtered(visit):
    page = visit("demo", "/sessions/?agent=refund-desk&mine=1")
    words = page.locator(".filter-words")
    expect(words).to_have_text("Shown: started by me, agent refund-desk. Clear")
    before, address = rows(page), page.url
    assert before

    page.get_by_role("searchbox").fill("A-0831")
    page.locator("summary", has_text="Filters").click()
    page.get_by_label("Status").select_option("completed")
    page.keyboard.press("Escape")
    expect(page.get_by_label("Status")).to_be_hidden()
    expect(words).to_have_text("Shown: started by me, agent refund-desk. Clear")
    assert (rows(page), page.url) == (before, address)

    page.get_by_role("button", name="Search").click()
    expect(words).to_have_text(
        "Shown: completed, started by me, agent refund-desk, “A-0831” in title or id. Clear"
    )
    expect(page.get_by_label("Status")).to_be_hidden()
    expect(page.locator("[data-row]")).to_have_count(1)
    expect(page.locator("[data-row]")).to_contain_text("Refund for A-0831")

    page.go_back()
    expect(words).to_have_text("Shown: started by me, agent refund-desk. Clear")
    assert set(rows(page)) == set(before)


def test_an_older_answer_about_a_line_that_comes_late_does_not_replace_the_newer(visit, site):
    address = site.start("brief")
    page = visit("demo", "/sessions/?agent=brief")
    row = page.locator(f"[data-row='{address.split('/')[2]}']")
    turn = row.locator(".c-turn")
    expect(turn).to_have_text("turn 1")
    expect(row.locator(".c-state")).to_have_text("Idle")
    held: list[Route] = []
    with page.expect_request(ABOUT_LINES):
        page.route(ABOUT_LINES, lambda route: held.append(route), times=1)
        site.api(f"{address[1:]}messages", {"text": "And now?"})
    # What the browser told is heard in order: the request is held by now.
    page.evaluate("() => 0")
    older = held[0].fetch()
    site.api(f"{address[1:]}messages", {"text": "And then?"})
    expect(turn).to_have_text("turn 3")

    assert "<td" in older.text() and "</span>3<" not in older.text()
    with page.expect_response(ABOUT_LINES) as late:
        held[0].fulfill(response=older)
    late.value.finished()
    # Whatever is made of the answer is made of it before the next frame but one.
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
    expect(turn).to_have_text("turn 3")


def test_on_a_narrow_screen_the_title_keeps_more_room_than_any_other_column(visit):
    page = visit("demo", "/sessions/")
    page.set_viewport_size({"width": 820, "height": 900})
    widths = (
        page.locator("[data-row]")
        .first.locator("td:visible")
        .evaluate_all(
            "all => Object.fromEntries(all.map(cell => [cell.className, cell.offsetWidth]))"
        )
    )
    assert max(widths, key=widths.get) == "c-main"
