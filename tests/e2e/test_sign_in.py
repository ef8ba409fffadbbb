"""Signing out takes everything away; a sign-in that expired takes nothing that was typed."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import sign_in

pytestmark = pytest.mark.e2e


def expire(page: Page) -> None:
    """The sign-in is over, and the page does not know."""
    page.context.clear_cookies(name="sessionid")


def test_after_signing_out_back_shows_nothing_of_a_session(visit, site):
    address = site.start("clerk", "Something confidential")
    page = visit("")
    sign_in(page, "demo")
    page.goto(address)
    expect(page.locator("h1")).to_have_text("Something confidential")
    page.locator(".menu summary").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in to Dexweb")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("heading", name="Sign in to Dexweb")).to_be_visible()
    expect(page.locator("body")).not_to_contain_text("Something confidential")


def test_a_message_typed_into_an_expired_sign_in_is_still_there_after_signing_in(visit, site):
    page = visit("", allow=("status of 40[13]", "WebSocket"))
    sign_in(page, "demo")
    page.goto(site.start("clerk"))
    page.get_by_label("Message to the agent").fill("Written slowly")
    expire(page)
    page.get_by_role("button", name="Send").click()
    expect(page.locator("#notices")).to_contain_text("You are signed out")
    expect(page.get_by_label("Message to the agent")).to_have_value("Written slowly")

    with page.context.expect_page() as second:
        page.locator("#notices").get_by_role("link", name="Sign in").click()
    sign_in(second.value, "demo")
    page.reload()
    expect(page.get_by_label("Message to the agent")).to_have_value("Written slowly")
    page.get_by_role("button", name="Send").click()
    expect(page.locator("#queued")).to_contain_text("Written slowly")


def test_the_form_of_a_new_session_keeps_its_message_over_an_expired_sign_in(visit):
    page = visit("", allow=("status of 403",))
    sign_in(page, "demo")
    page.goto("/sessions/new/")
    page.get_by_role("radio", name=re.compile("^Clerk")).check()
    page.get_by_label("Message", exact=True).fill("Written slowly")
    expire(page)
    page.get_by_role("button", name="Start session").click()
    sign_in(page, "demo")
    expect(page.get_by_label("Message", exact=True)).to_have_value("Written slowly")


def test_a_page_decides_nothing_for_somebody_who_signed_in_after_it_was_opened(visit, site):
    page = visit("", allow=("status of 40[13]", "WebSocket"))
    sign_in(page, "demo")
    page.goto(site.start("clerk"))
    page.get_by_label("Reason needed to reject").fill("Written slowly")
    expect(page.locator(".hold")).to_contain_text("You are on it")

    second = page.context.new_page()
    second.goto("/sessions/")
    second.locator(".menu summary").click()
    second.get_by_role("button", name="Sign out").click()
    sign_in(second, "ada")
    page.get_by_role("button", name=re.compile("^Reject")).click()
    expect(page.locator("#notices")).to_contain_text("ada has signed in")
    expect(page.get_by_label("Reason needed to reject")).to_have_value("Written slowly")
    second.goto(page.url)
    expect(second.get_by_label("Reason needed to reject")).to_be_visible()
