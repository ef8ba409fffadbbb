"""A question is answered by thumb."""

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.e2e


def test_on_a_phone_a_question_is_answered_and_the_agent_goes_on(visit, site):
    page = visit("demo", site.start("asker"), phone=True)
    page.locator(".ask-bar").tap()
    page.get_by_label("Lyon").check()
    page.get_by_label("What does the note say?").fill("Ring twice.")
    page.get_by_role("button", name="Send the answers").tap()
    expect(page.locator(".outcome-words")).to_have_text("demo answered.")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.get_by_role("button", name="Back to the session").tap()
    expect(page.locator("#session-head .state")).to_contain_text("Waits for a timer")
