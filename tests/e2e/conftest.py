"""One site and one browser for all browser tests, and people who use them.

Both last as long as this folder's tests only: Playwright's loop would be in the way of async ones.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

from tests.browser import find_chromium
from tests.e2e.site import PASSWORD, Site

PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
DESK = {"viewport": {"width": 1440, "height": 900}}

expect.set_options(timeout=15_000)


@pytest.fixture(scope="package")
def chromium() -> str:
    found = find_chromium()
    if not found:
        pytest.skip("No Chromium that starts was found; `make browser` gets one")
    return found


@pytest.fixture(scope="package")
def site(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    site = Site(tmp_path_factory.mktemp("site"))
    yield site
    site.stop()


@pytest.fixture(scope="package")
def browser(chromium: str) -> Iterator[Browser]:
    args = ["--no-sandbox", "--disable-background-networking", "--disable-gpu"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=args)
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def signed_in(site: Site, browser: Browser) -> Callable[[str], Any]:
    """The cookies of somebody who signed in once, for every later visit."""
    known: dict[str, Any] = {}

    def state(name: str) -> Any:
        if name not in known:
            context = browser.new_context(base_url=site.url)
            sign_in(context.new_page(), name)
            known[name] = context.storage_state()
            context.close()
        return known[name]

    return state


def sign_in(page: Page, name: str) -> None:
    """From wherever the page is, or from the sign-in page."""
    if "/accounts/login/" not in page.url:
        page.goto("/accounts/login/")
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(lambda url: "/accounts/login/" not in url)


@dataclass
class Visit:
    """One person's browser; what its console complains of is collected."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    allowed: list[str] = field(default_factory=list)

    def watch(self, page: Page) -> None:
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.complaints.append(f"{page.url}: {error}"))

    def unexpected(self) -> list[str]:
        return [
            words for words in self.complaints if not any(re.search(p, words) for p in self.allowed)
        ]

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.text} ({message.location.get('url')})")


@pytest.fixture
def visit(
    site: Site, browser: Browser, signed_in: Callable[[str], Any], request: pytest.FixtureRequest
) -> Iterator[Callable[..., Page]]:
    """``visit("ada", "/approvals/")`` is ada's page there; "" is somebody who is not signed in.

    No console error and no breach of the content policy passes unnoticed: what a test expects of
    them it names in ``allow``, patterns of a message's text.
    """
    visits: list[Visit] = []

    def open_page(
        name: str = "demo",
        address: str = "",
        *,
        phone: bool = False,
        dark: bool = False,
        scripts: bool = True,
        allow: tuple[str, ...] = (),
    ) -> Page:
        context = browser.new_context(
            base_url=site.url,
            storage_state=signed_in(name) if name else None,
            color_scheme="dark" if dark else "light",
            java_script_enabled=scripts,
            **(PHONE if phone else DESK),  # type: ignore[arg-type]
        )
        context.set_default_timeout(15_000)
        one = Visit(context.new_page(), allowed=list(allow))
        one.watch(one.page)
        context.on("page", one.watch)
        visits.append(one)
        if address:
            one.page.goto(address)
        return one.page

    yield open_page
    complaints = [words for one in visits for words in one.unexpected()]
    for number, one in enumerate(visits):
        if request.session.testsfailed and not one.page.is_closed():
            kept = Path(request.config.rootpath, ".pytest_cache", "e2e")
            kept.mkdir(parents=True, exist_ok=True)
            one.page.screenshot(path=kept / f"{request.node.name}-{number}.png")
        one.page.context.close()
    assert complaints == []
