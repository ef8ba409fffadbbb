"""The web server is killed while events pour in: the open page loses none of them."""

import sys

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.site import LAST_WORDS, STORY

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc"),
]

# What the browser itself says while no server is there.
AWAY = (
    "ERR_CONNECTION_REFUSED",
    "ERR_CONNECTION_RESET",
    "ERR_EMPTY_RESPONSE",
    "WebSocket connection",
)


def numbers(page: Page) -> list[int]:
    """The events that the Events tab shows, as they stand there, newest first."""
    return page.locator("#events [data-seq]").evaluate_all("all => all.map(e => +e.dataset.seq)")


def test_after_a_kill_the_page_has_every_event_once_in_order_and_all_that_was_said(visit, site):
    address = site.start("hoarder")
    page = visit("demo", f"{address}?tab=events", allow=AWAY)
    expect(page.locator("[data-live-text]")).to_contain_text("word20")
    page.evaluate("window.sameDocument = true")
    site.kill("web")
    expect(page.locator("#live")).to_have_text("reconnecting…")

    expect(page.locator("#talk-list")).to_contain_text(LAST_WORDS, timeout=60_000)
    expect(page.locator("#session-head .state")).to_have_text("Idle")
    kept = [event["seq"] for event in site.events(address)]
    expect(page.locator(f"#event-{kept[-1]}")).to_be_attached()
    show_all(page)

    shown = numbers(page)
    assert shown == sorted(set(shown), reverse=True)
    assert [seq for seq in reversed(shown) if seq in set(kept)] == kept
    said = page.locator("#talk-list .spoken .talk-text").all_inner_texts()
    assert said == [STORY, *["More."] * 3, LAST_WORDS]
    assert page.evaluate("window.sameDocument")


def show_all(page: Page) -> None:
    """Follow the link to older events until there is none."""
    while page.get_by_text("Show older events").count():
        before = len(numbers(page))
        page.get_by_text("Show older events").click()
        page.wait_for_function(
            "n => document.querySelectorAll('#events [data-seq]').length > n", arg=before
        )
