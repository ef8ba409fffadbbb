"""A session that an agent began for another one is found from its parent, and leads back to it."""

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import approve

pytestmark = pytest.mark.e2e


def test_a_sub_agents_session_and_its_parent_lead_to_each_other_and_its_answer_goes_up(visit, site):
    page = visit("demo", site.start("lead"))
    parent = page.url.removeprefix(site.url)
    at_work = page.locator("#session-head .at-work")
    expect(at_work).to_contain_text("Waits for approval")
    at_work.get_by_role("link").click()

    expect(page.get_by_role("heading", level=1)).to_have_text("Refund one euro of A-1120.")
    child = page.url.removeprefix(site.url)
    assert child == f"{parent.rstrip('/')}-clerk-1/"
    approve(page)
    expect(page.locator("#session-head .state")).to_have_text("Completed")

    page.locator(".crumb").get_by_title("The session that delegated to this one").click()
    expect(page.locator("#talk-list .spoken").last).to_contain_text("The clerk has done it.")
    expect(page.locator("#side")).to_contain_text("Works in a session of its own")
    expect(page.locator("#side .at-work")).to_contain_text("Completed")
    expect(page.locator("#side")).to_contain_text("That is all there is to do.")
    expect(page.locator(f"#side a[href='{child}']")).to_be_visible()
