"""Writing to the agent and stopping it, while it is at work."""

import re

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import approve
from tests.e2e.site import STORY

pytestmark = pytest.mark.e2e


def test_a_message_sent_while_a_turn_runs_is_shown_as_queued_and_then_taken(visit, site):
    page = visit("demo", site.start("clerk"))
    expect(page.locator("form.decide")).to_be_visible()
    text = page.get_by_label("Message to the agent")
    text.fill("And then tell me.")
    page.get_by_role("button", name="Send").click()
    expect(page.locator("#queued")).to_contain_text("And then tell me.")
    expect(page.locator("#queued")).to_contain_text("queued")
    expect(text).to_have_value("")
    expect(text).to_be_focused()

    approve(page)
    expect(page.locator("#turn-2 .said")).to_contain_text("And then tell me.")
    expect(page.locator("#queued")).not_to_contain_text("And then tell me.")


def queue(page, *texts):
    for text in texts:
        page.get_by_label("Message to the agent").fill(text)
        page.get_by_role("button", name="Send").click()
        expect(page.locator("#queued")).to_contain_text(text)


def test_a_waiting_message_is_edited_withdrawn_with_its_text_kept_and_another_steered_in(
    visit, site
):
    page = visit("demo", site.start("clerk"))
    expect(page.locator("form.decide")).to_be_visible()
    queue(page, "Secnod thoughts.", "Stop, it was delivered.")
    first = page.locator("#queued .said").first
    first.get_by_text("Edit").click()
    first.get_by_label("The message’s text").fill("Second thoughts.")
    first.get_by_role("button", name="Save").click()
    expect(page.locator("#queued")).to_contain_text("Second thoughts.")
    expect(page.locator("#queued details[open]")).to_have_count(0)
    page.locator("#queued .said").first.get_by_role("button", name="Withdraw").click()
    expect(page.locator("#kept-text")).to_have_value("Second thoughts.")
    expect(page.locator("#queued .said")).to_have_count(1)

    page.once("dialog", lambda dialog: dialog.accept())
    page.locator("#queued").get_by_role("button", name="Steer in now").click()
    expect(page.locator("#turn-1")).to_contain_text("steered in")
    expect(page.locator("#turn-1")).to_contain_text("withdrawn undecided")
    expect(page.locator("#queued .said")).to_have_count(0)


def test_an_edit_of_a_message_that_the_agent_takes_meanwhile_is_not_lost(visit, site):
    page = visit("demo", site.start("clerk"))
    expect(page.locator("form.decide")).to_be_visible()
    queue(page, "Second.")
    page.locator("#queued").get_by_text("Edit").click()
    page.get_by_label("The message’s text").fill("Second, but longer.")
    approve(page)
    expect(page.locator("#turn-2 .said")).to_contain_text("Second.")
    expect(page.get_by_label("Message to the agent")).to_have_value("Second, but longer.")
    expect(page.locator("#session-notice")).to_contain_text("waits no more")


def test_half_typed_text_and_the_focus_survive_live_updates(visit, site):
    page = visit("demo", site.start("narrator"))
    expect(page.locator("[data-live-text]")).to_contain_text("word5")
    page.get_by_label("Message to the agent").press_sequentially("Half a")
    page.get_by_label("Message to the agent").evaluate("field => field.setSelectionRange(2, 2)")
    expect(page.locator("#talk-list .spoken .talk-text")).to_have_text(STORY)
    expect(page.locator("#session-head .state")).to_have_text("Idle")
    page.keyboard.type("!")
    expect(page.get_by_label("Message to the agent")).to_have_value("Ha!lf a")


def test_a_canceled_turn_ends_its_steps_and_the_session_goes_on(visit, site):
    page = visit("demo", site.start("searcher"))
    expect(page.locator("#step-CallTool-1")).to_have_class(re.compile(r"\bs-run\b"))
    with page.expect_response("**/cancel-turn/") as canceled:
        page.get_by_role("button", name="Cancel turn").click()
    assert "The turn is being canceled" in canceled.value.text()
    expect(page.locator("#step-CallTool-1")).to_have_class(re.compile(r"\bs-off\b"))
    expect(page.locator("#session-head .state")).to_have_text("Idle")
    expect(page.get_by_role("button", name="Cancel turn")).to_have_count(0)
    expect(page.locator("#session-notice")).to_be_empty()
    expect(page.get_by_role("button", name="Send")).to_be_enabled()


def test_esc_closes_the_stop_dialog_and_gives_the_focus_back(visit, site):
    page = visit("demo", site.start("searcher"))
    page.get_by_role("button", name="Stop…").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    expect(page.locator("#stop-open")).to_be_focused()


def test_a_forced_end_needs_a_reason_and_is_refused_inside_the_dialog(visit, site):
    page = visit("demo", site.start("searcher"), allow=("status of 400",))
    page.get_by_role("button", name="Stop…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("radio", name=re.compile("^Terminate")).check()
    dialog.get_by_role("button", name="Stop it").click()
    expect(dialog.locator(".refusal")).to_contain_text("A reason is needed")
    expect(dialog.get_by_role("radio", name=re.compile("^Terminate"))).to_be_checked()

    dialog.get_by_label(re.compile("^Reason")).fill("It hangs.")
    dialog.get_by_role("button", name="Stop it").click()
    expect(dialog).to_be_hidden()
    expect(page.locator("#session-head .state")).to_have_text("Terminated")
    expect(page.locator("#session-head .ended")).to_contain_text("It hangs.")
    expect(page.locator("#composer")).to_contain_text("This session has ended")


def test_a_plain_cancel_needs_no_reason(visit, site):
    page = visit("demo", site.start("searcher"))
    page.get_by_role("button", name="Stop…").click()
    page.get_by_role("radio", name=re.compile("^Cancel now")).check()
    page.get_by_role("button", name="Stop it").click()
    expect(page.locator("#session-head .state")).to_have_text("Canceled")
