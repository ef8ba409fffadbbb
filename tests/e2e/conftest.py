"""One site and one browser for all browser tests, and people who use them.

Both last as long as this folder's tests only: Playwright's loop would be in the way of async ones.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    expect,
    sync_playwright,
)

from tests.browser import find_chromium
from tests.e2e.site import PASSWORD, Site

PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
DESK = {"viewport": {"width": 1440, "height": 900}}

# A person would have given up by then; a quiet machine needs a tenth of it.
LIMIT = 15_000
expect.set_options(timeout=LIMIT)


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
def finished(site: Site) -> str:
    """The address of the demo's session that has ended: nothing in it changes any more."""
    [session] = site.api("sessions/?agent=refund-desk&status=completed")["results"]
    return f"/sessions/{session['id']}/"


@pytest.fixture(scope="package")
def browser(chromium: str) -> Iterator[Browser]:
    args = ["--no-sandbox", "--disable-background-networking", "--disable-gpu"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=args)
        yield browser
        browser.close()


class People:
    """Browsers of people who signed in once; each keeps its cache, as a person's own does."""

    def __init__(self, browser: Browser, url: str) -> None:
        self.browser = browser
        self.url = url
        self.cookies: dict[str, Any] = {}
        self.known: dict[tuple[Any, ...], BrowserContext] = {}

    def context(self, name: str, *, phone: bool, dark: bool, scripts: bool) -> BrowserContext:
        """That of ``name``, or a new one for somebody who is not signed in."""
        key = (name, phone, dark, scripts)
        if not name or key not in self.known:
            made = self._new(
                storage_state=self._cookies_of(name) if name else None,
                color_scheme="dark" if dark else "light",
                java_script_enabled=scripts,
                **(PHONE if phone else DESK),
            )
            if not name:
                return made
            self.known[key] = made
        return self.known[key]

    def _cookies_of(self, name: str) -> Any:
        if name not in self.cookies:
            context = self._new()
            sign_in(context.new_page(), name)
            self.cookies[name] = context.storage_state()
            context.close()
        return self.cookies[name]

    def _new(self, **options: Any) -> BrowserContext:
        context = self.browser.new_context(base_url=self.url, **options)
        context.set_default_timeout(LIMIT)
        return context


@pytest.fixture(scope="package")
def people(site: Site, browser: Browser) -> People:
    return People(browser, site.url)


def sign_in(page: Page, name: str) -> None:
    """From wherever the page is, or from the sign-in page."""
    if "/accounts/login/" not in page.url:
        page.goto("/accounts/login/")
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(lambda url: "/accounts/login/" not in url)


def approve(page: Page) -> None:
    """Both steps of a call of high risk."""
    page.get_by_role("button", name=re.compile("^Approve")).click()
    page.get_by_role("button", name="Yes, approve").click()


@dataclass
class Visit:
    """One page that a person opened; what the browser's console complains of is collected."""

    page: Page
    allowed: tuple[str, ...] = ()
    complaints: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.complaints.append(f"{self.page.url}: {error}"))

    def unexpected(self) -> list[str]:
        return [
            words for words in self.complaints if not any(re.search(p, words) for p in self.allowed)
        ]

    def close(self, picture: Path | None) -> None:
        if picture and not self.page.is_closed():
            picture.parent.mkdir(parents=True, exist_ok=True)
            self.page.screenshot(path=picture)
        self.page.close()

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.text} ({message.location.get('url')})")


@pytest.fixture
def visit(people: People, request: pytest.FixtureRequest) -> Iterator[Callable[..., Page]]:
    """``visit("ada", "/approvals/")`` is ada's page there; "" is somebody who is not signed in.

    No console error and no breach of the content policy passes unnoticed: what a test expects of
    them it names in ``allow``, patterns of a message's text. A failed test leaves pictures in
    .pytest_cache/e2e.
    """
    visits: list[Visit] = []
    failed_before = request.session.testsfailed

    def open_page(
        name: str = "demo",
        address: str = "",
        *,
        phone: bool = False,
        dark: bool = False,
        scripts: bool = True,
        allow: tuple[str, ...] = (),
    ) -> Page:
        context = people.context(name, phone=phone, dark=dark, scripts=scripts)
        visits.append(Visit(context.new_page(), allow))
        if address:
            visits[-1].page.goto(address)
        return visits[-1].page

    yield open_page
    failed = request.session.testsfailed > failed_before
    folder = request.config.rootpath / ".pytest_cache" / "e2e"
    for number, one in enumerate(visits):
        one.close(folder / f"{request.node.name}-{number}.png" if failed else None)
    assert [words for one in visits for words in one.unexpected()] == []
