"""Who serves which pool, as an open page of workers shows it."""

import sys

import pytest
from playwright.sync_api import Page, expect

from tests.dexweb.processes import Running

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc"),
]

# A worker counts as there for some seconds after its last word, which the test need not sit through.
LATER = """
from datetime import timedelta
from django.db.models import F
from sessions_app.models import WorkerPresence
rows = WorkerPresence.objects.filter(pool="night")
rows.update(seen_at=F("seen_at") - timedelta(minutes=1))
"""


@pytest.fixture
def night(site):
    worker = Running(
        *("manage.py", "worker", "--pool", "night", "--slots", "3", "--model-slots", "2"),
        env=site.place.env,
    )
    yield worker
    worker.close()


def look_again(page: Page) -> None:
    """The page does so by itself, every five seconds of its own clock."""
    with page.expect_response("**/workers/"):
        page.clock.fast_forward(5_000)


def test_a_pool_shows_its_slots_and_a_killed_worker_is_soon_not_said_to_serve_it(
    visit, site, night
):
    page = visit("viewer")
    page.clock.install()
    page.goto("/workers/")
    default = page.locator("#pool-default")
    expect(default).to_contain_text("1 worker")
    expect(default).to_contain_text("of 50 slots free")
    expect(default.locator("tbody tr")).to_contain_text("Serving")

    night.line("is ready")
    page.evaluate("window.sameDocument = true")
    pool = page.locator("#pool-night")
    while not pool.count():
        look_again(page)
    expect(pool).to_contain_text("3 of 3 slots free")
    expect(pool).to_contain_text("2 of 2 slots free")
    line = pool.locator("tbody tr", has_text=f"process {night.process.pid}")
    expect(line).to_contain_text("Serving")

    night.process.kill()
    night.process.wait()
    site.manage("shell", "--no-imports", "-c", LATER)
    look_again(page)
    expect(line).to_contain_text("Silent")
    expect(pool).not_to_contain_text("Serving")
    expect(pool).to_contain_text("no slots")
    assert page.evaluate("window.sameDocument")
