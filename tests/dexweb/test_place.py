"""Our commands where there is no data: in a shell without the DEXWEB_VAR of the installation."""

import sqlite3
from contextlib import closing

import pytest

from tests.dexweb.processes import Running


@pytest.fixture(autouse=True)
def bare_shell(monkeypatch):
    for name in ("DATABASE_URL", "DEXWEB_TEMPORAL_ADDRESS"):
        monkeypatch.delenv(name, raising=False)


def run(var, *words):
    """Its exit code, and what it printed."""
    running = Running("manage.py", *words, env={"DEXWEB_VAR": str(var)})
    return running.ended(), running.output


@pytest.mark.parametrize(
    "words",
    [
        ["token", "demo"],
        ["worker"],
        ["worker_version"],
        ["import_agents", "agents.yaml"],
        ["seed_users"],
        ["seed_demo"],
        ["verify_audit"],
        ["prune_audit", "--older-than", "400d"],
        ["rotate_credentials"],
    ],
    ids=" ".join,
)
def test_a_command_without_data_says_so_in_a_line_and_makes_nothing(tmp_path, words):
    var = tmp_path / "var"
    said = f"No Dexweb data in {var}; is DEXWEB_VAR set?\n"
    assert run(var, *words) == (1, said)
    assert not var.exists()


def test_a_database_without_tables_is_no_data(tmp_path):
    with closing(sqlite3.connect(tmp_path / "dexweb.sqlite3")) as database:
        database.execute("PRAGMA journal_mode=WAL")
    code, said = run(tmp_path, "token", "demo")
    assert (code, said.splitlines()) == (
        1,
        [f"No Dexweb data in {tmp_path}; is DEXWEB_VAR set?"],
    )


def test_data_that_is_there_is_worked_on(tmp_path):
    assert run(tmp_path, "migrate", "-v", "0")[0] == 0
    code, said = run(tmp_path, "token", "demo")
    assert (code, said) == (1, "CommandError: There is no user “demo”.\n")
