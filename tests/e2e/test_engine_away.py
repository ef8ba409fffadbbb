"""A decision while the engine does not answer is kept, and delivered once it is back."""

import os
import re
import signal
import sys

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import approve

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc"),
]


@pytest.fixture
def engine(site):
    pid = site.pid("engine")
    yield pid
    os.kill(pid, signal.SIGCONT)


def test_a_decision_is_kept_and_delivered_when_the_engine_is_back(visit, site, engine):
    page = visit("demo", site.start("clerk"), allow=("status of 503",))
    expect(page.locator("form.decide")).to_be_visible()
    os.kill(engine, signal.SIGSTOP)
    with page.expect_response("**/decide/") as answer:
        approve(page)
    assert answer.value.status == 503
    expect(page.locator("#side .refusal")).to_contain_text(
        "Your decision is kept and will be delivered as soon as it is back."
    )
    expect(page.locator("#side")).to_contain_text("demo chose to approve")
    expect(page.get_by_role("button", name=re.compile("^(Approve|Reject)"))).to_have_count(0)

    os.kill(engine, signal.SIGCONT)

    expect(page.locator(".outcome-words")).to_have_text("demo approved it.", timeout=30_000)
    expect(page.locator("#session-head .state")).to_have_text("Idle", timeout=30_000)
    assert [e["type"] for e in site.events(page.url.split(site.url)[1])].count("tool.started") == 1
