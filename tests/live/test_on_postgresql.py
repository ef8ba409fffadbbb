"""The races once more, on a real PostgreSQL: where rows are locked one by one, not the whole file."""

import os
import subprocess
import sys

import pytest
from django.db import connection

RACES = [
    "tests/sessions_app/spend/test_budgets.py::test_sessions_that_ask_at_once_overrun_a_budget_by_one_call_each_at_most",
    "tests/live/test_decisions.py::test_of_two_approvers_at_the_same_instant_one_wins_and_the_other_is_told_who",
    "tests/live/test_decisions.py::test_many_approvers_at_once_make_one_decision_and_one_run",
    "tests/live/test_decisions.py::test_with_the_engine_away_the_decision_is_kept",
    "tests/live/test_targeting.py::test_where_decision_and_deadline_meet_there_is_one_outcome_and_all_agree",
    "tests/live/test_targeting.py::test_several_sweepers_deliver_a_kept_decision_once",
    "tests/live/test_approvals_rest.py::test_people_and_tokens_at_once_make_one_outcome_and_each_is_told_who",
    "tests/live/test_approvals_engine.py::test_an_engine_that_is_killed_right_after_it_took_a_decision_has_it_when_it_is_back",
    "tests/live/test_approvals_votes.py::test_many_people_and_requests_at_once_make_one_outcome_of_two_votes",
]


@pytest.mark.skipif(connection.vendor == "postgresql", reason="the whole run is on PostgreSQL")
def test_the_races_end_the_same_on_postgresql(postgres_url: str) -> None:
    """In a run of its own, since a process has one database."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("DEXWEB_", "PYTEST_")) and name != "DJANGO_SETTINGS_MODULE"
    }
    environment["DEXWEB_TEST_DATABASE_URL"] = postgres_url
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *RACES],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stdout[-4000:]
    assert "passed" in run.stdout
