"""The promises that a database's locks and notices bear, once more on a real PostgreSQL: there rows are
locked one by one, not the whole file, and commits are heard of by LISTEN and NOTIFY.
"""

import os
import subprocess
import sys

import pytest
from django.conf import settings
from django.db import connection

PROJECTION = ["tests/sessions_app/test_projection.py"]
STREAM = [
    f"tests/sessions_app/stream/{name}"
    for name in ("test_live.py", "test_replay.py", "test_read.py")
]
AUDIT = [
    "tests/approvals_app/test_audit.py",
    "tests/approvals_app/test_audit_prune.py::test_what_is_old_is_removed_some_at_a_time_and_nothing_twice",
    "tests/approvals_app/test_audit_prune.py::test_several_at_once_remove_each_entry_once_and_others_go_on_recording",
]
SPEND = [
    "tests/sessions_app/spend/test_budgets.py::test_a_used_up_budget_stops_the_next_call_and_says_which_and_how_much",
    "tests/sessions_app/spend/test_budgets.py::test_sessions_that_ask_at_once_overrun_a_budget_by_one_call_each_at_most",
]
DECISIONS = [
    "tests/approvals_app/test_kept_decisions.py",
    "tests/live/test_decisions.py::test_many_approvers_at_once_make_one_decision_and_one_run",
    "tests/live/test_decisions.py::test_with_the_engine_away_the_decision_is_kept",
    "tests/live/test_targeting.py::test_where_decision_and_deadline_meet_there_is_one_outcome_and_all_agree",
    "tests/live/test_targeting.py::test_several_sweepers_deliver_a_kept_decision_once",
    "tests/live/test_approvals_rest.py::test_people_and_tokens_at_once_make_one_outcome_and_each_is_told_who",
    "tests/live/test_approvals_engine.py::test_an_engine_that_is_killed_right_after_it_took_a_decision_has_it_when_it_is_back",
    "tests/live/test_approvals_votes.py::test_many_people_and_requests_at_once_make_one_outcome_of_two_votes",
]


@pytest.mark.skipif(connection.vendor == "postgresql", reason="the whole run is on PostgreSQL")
def test_the_same_promises_hold_on_postgresql(postgres_url: str) -> None:
    """In a run of its own, since a process has one database."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("DEXWEB_", "PYTEST_"))
        and name not in ("DATABASE_URL", "DJANGO_SETTINGS_MODULE")
    }
    environment["DEXWEB_TEST_DATABASE_URL"] = postgres_url
    chosen = [*PROJECTION, *STREAM, *AUDIT, *SPEND, *DECISIONS]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *chosen],
        cwd=settings.BASE_DIR,
        env=environment,
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-2000:]
    assert "passed" in run.stdout and "skipped" not in run.stdout
