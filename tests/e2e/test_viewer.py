"""Somebody who may only look sees no button that would be refused, and why."""

import re

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.e2e

ACTS = re.compile("^(Approve|Reject|Cancel turn|Stop|Send|New session|Start)")


def test_a_viewer_sees_words_in_the_place_of_buttons(visit, site):
    page = visit("viewer", site.start("clerk"))
    side = page.locator("#side")
    expect(side).to_contain_text("You can read this, but not decide it.")
    expect(side).to_contain_text("refunds.approve")
    expect(page.locator("#composer")).to_contain_text("needs the permission to operate sessions")
    expect(page.get_by_role("button", name=ACTS)).to_have_count(0)


def test_a_viewer_is_offered_nothing_on_the_lists(visit, site):
    page = visit("viewer", "/sessions/")
    expect(page.get_by_role("link", name=ACTS)).to_have_count(0)
    page.goto(site.start("clerk"))
    expect(page.locator("#side")).to_contain_text("not decide it")
    page.goto("/approvals/")
    expect(page.locator("#main")).to_contain_text("Others decide")
    expect(page.locator("#main")).not_to_contain_text("Your decision")


def test_what_a_viewer_may_not_open_says_so(visit):
    page = visit("viewer", "/sessions/new/", allow=("status of 403",))
    expect(page.get_by_role("heading", name="You may not see this")).to_be_visible()
