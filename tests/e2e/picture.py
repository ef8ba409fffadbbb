"""The README's picture, taken anew: ``python -m tests.e2e.picture``."""

import tempfile
from pathlib import Path

from playwright.sync_api import expect, sync_playwright

from tests.browser import find_chromium
from tests.dexweb.processes import ROOT, Place

TARGET = ROOT / "docs" / "images" / "session.png"
PASSWORD = "for the picture"


def take(place: Place) -> None:
    """The seeded session that waits, as it looks a moment after the start."""
    args = ["--no-sandbox", "--disable-background-networking", "--disable-gpu"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=args)
        size = {"width": 1440, "height": 900}
        page = browser.new_page(base_url=place.url, viewport=size, color_scheme="light")
        page.goto("/accounts/login/")
        page.get_by_label("Name").fill("demo")
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("link", name="Refund for two late orders").click()
        expect(page.locator("#live")).to_have_attribute("data-state", "live")
        expect(page.locator("#strip svg")).to_be_visible()
        page.screenshot(path=TARGET)
        browser.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as var:
        place = Place(Path(var))
        running = place.up(DEXWEB_DEMO="1", DEXWEB_DEMO_PASSWORD=PASSWORD)
        try:
            running.line("Dexweb is ready", limit=180)
            TARGET.parent.mkdir(exist_ok=True)
            take(place)
        finally:
            running.stop()
    print(f"{TARGET}: {TARGET.stat().st_size:,} bytes")
