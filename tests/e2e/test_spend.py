"""A budget that is used up stops a session; a person sees it and lets it go on."""

import re

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.e2e


def test_a_session_that_waits_for_budget_goes_on_once_its_spend_is_raised(visit, site):
    page = visit("demo", site.start("frugal"))
    blocked = page.locator(".spend-ask")
    expect(blocked).to_contain_text("frugal-session is used up")
    expect(page.locator("#session-head .state")).to_have_text("Waits for budget")
    expect(page.locator("#talk-list")).not_to_contain_text("The order is on its way.")

    used, limit = page.locator("#session-head .fact", has_text="Spend"), r"\$[0-9.]+ of \$0\.001"
    said = re.search(limit, blocked.inner_text())
    assert said and said[0] in used.inner_text()
    expect(used.locator(".meter")).to_have_class(re.compile("near"))

    page.get_by_label("Raise by $").fill("2.50")
    with page.expect_response("**/raise-spend/") as raised:
        page.get_by_role("button", name="Raise").click()
    assert re.search(r"It may spend \$2\.50 more, \$2\.5\d+ in all", raised.value.text())
    expect(page.locator("#talk-list")).to_contain_text("The order is on its way.")
    expect(page.locator("#session-head .state")).to_have_text("Idle")
    expect(blocked).to_have_count(0)
    expect(page.locator("#session-head .facts")).to_contain_text("of $2.5")
    expect(used.locator(".meter")).not_to_have_class(re.compile("near"))
    expect(page.locator("#session-notice")).to_be_empty()


def test_the_page_of_spend_shows_the_budget_that_stopped_a_session_and_leads_to_it(visit, site):
    session = visit("ada", site.start("frugal"))
    expect(session.locator(".spend-ask")).to_contain_text("may raise spend can let it go on")
    expect(session.get_by_role("button", name="Raise")).to_have_count(0)

    page = visit("demo", "/spend/")
    budget = page.locator(".budget", has_text="frugal-session")
    link = page.locator(f"a[href='{session.url.removeprefix(site.url)}']")
    expect(budget.locator(".sum").filter(has=link)).to_contain_text("Used up")
    expect(page.locator(".chart", has_text="By agent")).to_contain_text("frugal")
    budget.locator(link).click()
    expect(page.locator(".spend-ask")).to_contain_text("frugal-session is used up")
