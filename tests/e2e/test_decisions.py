"""Deciding in the browser: what a person sees before, while and after, without a reload."""

import re

import pytest
from playwright.sync_api import Page, Route, expect

from tests.e2e.conftest import approve, sign_in

pytestmark = pytest.mark.e2e

CONFLICT = "status of 409"


def live(page: Page) -> None:
    expect(page.locator("#live")).to_have_attribute("data-state", "live")


def test_an_approved_refund_runs_and_the_turn_ends_without_a_reload(visit):
    page = visit("", "/")
    sign_in(page, "demo")
    page.get_by_role("link", name="Refund for two late orders").click()
    live(page)
    expect(page.locator("#step-AwaitToolApproval-1")).to_have_class(re.compile(r"\bs-act\b"))
    expect(page.locator("#step-CallSingleAttemptTool-1")).to_have_class(re.compile(r"\bs-off\b"))
    page.get_by_role("link", name=re.compile("^Events")).click()
    expect(page.locator("#events")).to_contain_text("approval.requested")
    page.get_by_role("link", name="Graph").click()
    page.evaluate("window.sameDocument = true")

    page.keyboard.press("a")
    yes = page.get_by_role("button", name="Yes, approve")
    expect(yes).to_be_focused()
    expect(page.locator(".sure")).to_contain_text("Writes, runs once, never retried")
    expect(page.locator(".sure .args")).to_contain_text("A-1042")
    page.keyboard.press("Escape")
    expect(yes).to_be_hidden()
    page.keyboard.press("a")
    page.keyboard.press("Enter")

    expect(page.locator(".outcome-words")).to_have_text("demo approved it.")
    expect(page.locator("#step-AwaitToolApproval-1")).to_have_class(re.compile(r"\bs-ok\b"))
    expect(page.locator("#step-CallSingleAttemptTool-1")).to_have_class(re.compile(r"\bs-ok\b"))
    expect(page.locator("#talk-list")).to_contain_text("Order A-1042 is refunded: 184.90 EUR.")
    expect(page.locator("#session-head .state")).to_have_text("Idle")
    assert page.evaluate("window.sameDocument")


def test_a_rejection_needs_a_reason_which_the_agent_takes_up(visit):
    page = visit("demo", "/sessions/new/", allow=("status of 400",))
    page.get_by_role("radio", name=re.compile("^Late desk")).check()
    page.get_by_label("Message", exact=True).fill("Order A-1042 came late. Please refund it.")
    page.get_by_role("button", name="Start session").click()
    live(page)
    composer = page.get_by_label("Message to the agent")
    composer.fill("And another thing")

    page.get_by_role("button", name=re.compile("^Reject")).click()
    expect(page.locator("#side .refusal")).to_contain_text("A reason is needed")
    reason = page.get_by_label("Reason needed to reject")
    expect(reason).to_be_focused()
    reason.fill("The carrier says that it came in time.")
    page.get_by_role("button", name=re.compile("^Reject")).click()

    expect(page.locator(".outcome-words")).to_contain_text("demo rejected it. It did not run")
    expect(page.locator("#step-AwaitToolApproval-1")).to_have_class(re.compile(r"\bs-off\b"))
    words = page.locator("#talk-list .spoken").last
    expect(words).to_contain_text(
        "was not approved for this reason: “The carrier says that it came"
    )
    expect(page.locator("#session-head .state")).to_have_text("Idle")
    expect(composer).to_have_value("And another thing")


def type_reason(page: Page, words: str, *, hold: bool = True) -> None:
    """Typing says to the others that one is at it; without ``hold`` that is let go again."""
    page.get_by_label("Reason needed to reject").fill(words)
    expect(page.locator(".hold")).to_contain_text("You are on it")
    if not hold:
        page.get_by_role("button", name="Let go").click()
        expect(page.get_by_role("button", name="I’m on it")).to_be_visible()


def approval_pages(visit, site, *names: str, allow: tuple[str, ...] = ()) -> list[Page]:
    """One approval, opened by each of them."""
    first = visit(names[0], site.start("clerk"), allow=allow)
    form = first.locator("form.decide")
    expect(form).to_be_visible()
    address = form.get_attribute("action").removesuffix("decide/")
    first.goto(address)
    pages = [first, *(visit(name, address, allow=allow) for name in names[1:])]
    for page in pages:
        expect(page.get_by_role("button", name=re.compile("^Approve"))).to_be_visible()
    return pages


def test_another_approver_sees_live_who_decided_what(visit, site):
    demo, ada = approval_pages(visit, site, "demo", "ada")
    type_reason(ada, "The customer called twice.")
    expect(demo.locator(".hold")).to_contain_text("ada is on it")
    approve(ada)

    expect(demo.locator(".outcome-words")).to_have_text("ada approved it.")
    expect(demo.locator(".outcome")).to_contain_text("The customer called twice.")
    expect(demo.locator(".then")).to_contain_text("Completed")
    expect(demo.get_by_role("button", name=re.compile("^(Approve|Reject)"))).to_have_count(0)


def test_the_loser_of_a_race_learns_who_won_and_keeps_the_reason(visit, site):
    demo, ada = approval_pages(visit, site, "demo", "ada", allow=(CONFLICT,))
    held: list[Route] = []
    ada.route("**/decide/", lambda route: held.append(route))
    type_reason(ada, "Not without a photo.", hold=False)
    with ada.expect_request("**/decide/"):
        ada.get_by_role("button", name=re.compile("^Reject")).click()
    approve(demo)
    expect(demo.locator(".outcome-words")).to_have_text("demo approved it.")

    with ada.expect_response("**/decide/") as answer:
        held[0].continue_()

    assert answer.value.status == 409
    expect(ada.locator(".refusal")).to_contain_text("already approved by demo")
    expect(ada.get_by_role("button", name=re.compile("^(Approve|Reject)"))).to_have_count(0)
    expect(ada.locator(".ask")).to_contain_text("Not without a photo.")


def test_the_buttons_say_who_is_on_it_until_it_is_taken_over(visit, site):
    demo, ada = approval_pages(visit, site, "demo", "ada")
    held = demo.locator(".ask-actions .held")
    expect(held).to_be_hidden()
    ada.get_by_role("button", name="I’m on it").click()
    expect(held).to_contain_text("ada is on it: what you send is refused")
    demo.get_by_role("button", name="Take over").click()
    expect(held).to_be_hidden()
    expect(ada.locator(".ask-actions .held")).to_contain_text("demo is on it")


def test_what_was_typed_stays_when_somebody_else_decides_first(visit, site):
    demo, ada = approval_pages(visit, site, "demo", "ada")
    type_reason(ada, "Half a thought")
    expect(demo.locator(".hold")).to_contain_text("ada is on it")
    demo.get_by_role("button", name="Take over").click()
    expect(demo.locator(".hold")).to_contain_text("You are on it")
    approve(demo)

    expect(ada.locator(".outcome-words")).to_have_text("demo approved it.")
    expect(ada.get_by_label("What you typed")).to_have_value("Half a thought")


def test_a_decision_that_falls_while_the_panel_is_being_read_anew_is_shown_at_once(visit, site):
    demo, ada = approval_pages(visit, site, "demo", "ada")
    held: list[Route] = []
    demo.route("**/panel/", lambda route: held.append(route), times=1)
    with demo.expect_request("**/panel/"):
        ada.get_by_role("button", name=re.compile("^I’m on it")).click()
    badge = demo.locator("#pending-approvals")
    pending = badge.text_content()
    older = held[0].fetch()
    approve(ada)
    expect(badge).not_to_have_text(pending)
    expect(ada.locator(".outcome-words")).to_have_text("ada approved it.")

    held[0].fulfill(response=older)
    # Before the panel would have asked by itself.
    expect(demo.locator(".outcome-words")).to_have_text("ada approved it.", timeout=5_000)


def test_of_two_gates_in_a_row_the_panel_stays_open_and_shows_the_next_one(visit, site):
    page = visit("demo", site.start("twice"))
    live(page)
    side = page.locator("#side")
    for amount in ("3", "4"):
        expect(side.locator(".args")).to_contain_text(f"amount{amount}")
        side.get_by_role("button", name=re.compile("^Approve")).click()
    expect(side.locator(".outcome-words")).to_have_text("demo approved it.")
    expect(page.locator("#session-head .state")).to_have_text("Idle")
