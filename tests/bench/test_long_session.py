"""A session of 1,000 turns, as `make test` has one of 150."""

import time

import pytest

from tests.live.conftest import Live, live, standing_worker  # noqa: F401
from tests.live.test_long_session import run_through

TURNS = 1_000


@pytest.mark.bench
@pytest.mark.usefixtures("standing_worker")
def test_a_session_of_a_thousand_turns(live: Live, settings: object) -> None:  # noqa: F811
    began = time.monotonic()
    run_through(live, settings, TURNS)
    print(f"\n1,000 turns in {time.monotonic() - began:.0f} s, nothing lost or repeated")
