"""An approval whose deadline passes while somebody looks at it."""

import re

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import approve

pytestmark = pytest.mark.e2e

DECIDE = re.compile("^(Approve|Reject)")


def test_at_the_deadline_the_buttons_go_and_nobody_is_said_to_have_decided(visit, site):
    page = visit("demo", site.start("hasty"))
    expect(page.locator("#side").get_by_role("button", name=DECIDE)).to_have_count(2)
    page.get_by_label("Reason needed to reject").fill("Let me think")
    expect(page.locator(".hold")).to_contain_text("You are on it")

    expect(page.locator(".outcome-words")).to_have_text(
        "Nobody decided before the deadline, so it did not run."
    )
    expect(page.get_by_role("button", name=DECIDE)).to_have_count(0)
    expect(page.get_by_label("What you typed")).to_have_value("Let me think")
    expect(page.locator("#step-AwaitToolApproval-1")).not_to_have_class(re.compile(r"\bs-act\b"))
    expect(page.locator("#side")).not_to_contain_text("rejected by")
    expect(page.locator("#session-head .state")).to_have_text("Idle")


def test_a_click_on_a_page_that_did_not_hear_of_the_deadline_is_explained(visit, site):
    address = site.start("hasty")
    watching = visit("demo", address)
    expect(watching.locator("form.decide")).to_be_visible()
    decide = watching.locator("form.decide").get_attribute("action")
    stale = visit("demo", decide, scripts=False, allow=("status of 409",))
    stale.get_by_label("Reason needed to reject").fill("It was late indeed.")
    expect(watching.locator(".outcome-words")).to_be_visible()

    with stale.expect_navigation() as answer:
        approve(stale)

    assert answer.value.status == 409
    expect(stale.locator(".refusal")).to_contain_text("Too late: the deadline has passed")
    expect(stale.locator(".refusal")).to_contain_text("The call does not run")
    expect(stale.get_by_label("What you typed")).to_have_value("It was late indeed.")
    expect(stale.get_by_role("button", name=DECIDE)).to_have_count(0)
