"""Editing what will run, and keeping an approval to oneself, in two browsers."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import approve

pytestmark = pytest.mark.e2e


def approval_of(page: Page) -> str:
    """The address of the approval that the session page shows."""
    form = page.locator("form.decide")
    expect(form).to_be_visible()
    return form.get_attribute("action").removesuffix("decide/")


def test_edited_arguments_are_reviewed_and_then_run_as_edited(visit, site):
    address = site.start("pliant")
    page = visit("demo", address)
    page.goto(approval_of(page))
    page.locator("details.edit summary").click()
    amount = page.locator("[data-edit-fields]").get_by_label(re.compile("amount"))
    amount.fill("0.5")
    expect(page.locator("[data-edit-raw]")).to_have_value(re.compile('"amount": 0.5'))
    page.get_by_role("button", name="Review changes").click()

    expect(page.locator(".ask")).to_contain_text("0.5")
    approve(page)
    expect(page.locator(".outcome-words")).to_contain_text("demo approved it")
    expect(page.locator(".then")).to_contain_text("Completed")

    page.goto(address)
    expect(page.locator("#talk-list")).to_contain_text("That is all there is to do.")
    calls = [row for row in site.events(address) if row["type"] == "approval.voted"]
    assert [row["payload"]["edited"] for row in calls] == [True]


def test_arguments_that_do_not_fit_the_tool_are_refused_at_their_field(visit, site):
    page = visit("demo", site.start("pliant"), allow=("status of 422",))
    page.goto(approval_of(page))
    page.locator("details.edit summary").click()
    raw = page.locator("[data-edit-raw]")
    raw.fill('{"order_id": "A-1120", "amount": "lots", "currency": "EUR", "reason": "late"}')
    page.get_by_role("button", name="Review changes").click()

    expect(page.locator(".edit-errors")).to_contain_text("amount")
    expect(page.locator("[data-edit-raw]")).to_have_value(re.compile('"lots"'))


def test_who_is_on_it_keeps_the_other_out_until_taken_over(visit, site):
    demo = visit("demo", site.start("clerk"))
    address = approval_of(demo)
    demo.goto(address)
    ada = visit("ada", address)
    demo.get_by_role("button", name=re.compile("^I’m on it")).click()
    expect(demo.locator(".hold")).to_contain_text("You are on it")
    expect(ada.locator(".hold")).to_contain_text("demo is on it")

    ada.get_by_role("button", name="Take over").click()
    expect(ada.locator(".hold")).to_contain_text("You are on it")
    expect(demo.locator(".hold")).to_contain_text("ada is on it")
    ada.get_by_role("button", name="Let go").click()
    expect(demo.get_by_role("button", name=re.compile("^I’m on it"))).to_be_visible()


def test_a_wrong_client_clock_does_not_change_the_time_that_is_left(visit, site):
    page = visit("demo", site.start("clerk"))
    address = approval_of(page)
    page.clock.install(time="2031-01-01T00:00:00Z")
    page.goto(address)
    expect(page.locator(".left").first).to_contain_text(re.compile(r"(29|30):\d\d"))
    expect(page.get_by_role("button", name=re.compile("^Approve"))).to_be_enabled()


def test_what_was_edited_is_there_to_copy_when_somebody_else_decides_first(visit, site):
    demo = visit("demo", site.start("pliant"))
    address = approval_of(demo)
    demo.goto(address)
    ada = visit("ada", address)
    ada.locator("details.edit summary").click()
    amount = ada.locator("[data-edit-fields]").get_by_label(re.compile("amount"))
    amount.fill("0.75")
    expect(ada.locator(".hold")).to_contain_text("You are on it")
    demo.get_by_role("button", name="Take over").click()
    expect(demo.locator(".hold")).to_contain_text("You are on it")
    approve(demo)

    expect(ada.locator(".outcome-words")).to_contain_text("demo approved it")
    kept = ada.get_by_label("The arguments as you edited them")
    expect(kept).to_have_value(re.compile('"amount": 0.75'))
    ada.get_by_role("button", name="Copy").click()
    expect(ada.get_by_role("button", name="Copied")).to_be_visible()
    expect(ada.get_by_label("What you typed")).to_be_hidden()
