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


def test_after_a_kill_the_page_has_every_kept_event_once_and_in_order(visit, site):
    address = site.start("hoarder")
    page = visit("demo", f"{address}?tab=events", allow=AWAY)
    expect(page.locator("[data-live-text]")).to_contain_text("word20")
    page.evaluate("window.sameDocument = true")

    site.kill("web")
    expect(page.locator("#live")).to_have_text("reconnecting…")

    expect(page.locator("#live")).to_have_attribute("data-state", "live", timeout=30_000)
    expect(page.locator("#talk-list")).to_contain_text(LAST_WORDS, timeout=30_000)
    expect(page.locator("#session-head .state")).to_have_text("Idle")
    kept = [event["seq"] for event in site.events(address)]
    expect(page.locator(f"#event-{kept[-1]}")).to_be_attached()
    while page.get_by_text("Show older events").count():
        before = len(numbers(page))
        page.get_by_text("Show older events").click()
        page.wait_for_function(
            "n => document.querySelectorAll('#events [data-seq]').length > n", arg=before
        )
    shown = numbers(page)
    assert shown == sorted(set(shown), reverse=True)
    assert [seq for seq in reversed(shown) if seq in set(kept)] == kept
    assert page.evaluate("window.sameDocument")


def test_after_a_kill_the_conversation_is_whole(visit, site):
    page = visit("demo", site.start("narrator"), allow=AWAY)
    expect(page.locator("[data-live-text]")).to_contain_text("word20")

    site.kill("web")
    expect(page.locator("#live")).to_have_text("reconnecting…")

    expect(page.locator("#session-head .state")).to_have_text("Idle", timeout=30_000)
    expect(page.locator("#talk-list .spoken .talk-text")).to_have_text(STORY)
    expect(page.locator("#talk-list .spoken")).to_have_count(1)
