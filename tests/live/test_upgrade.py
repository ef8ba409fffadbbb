"""The drill of docs/upgrades.md: new code comes while sessions wait, the old workers go."""

import shutil
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.test import Client

from dexweb.management.commands import up
from sessions_app import actions
from tests.live.conftest import Live, assert_stream_is_whole, until

REFUND = {"order_id": "A-1042", "amount": 20, "currency": "EUR", "reason": "late"}
SCRIPT = [{"calls": [{"tool": "shop__issue_refund", "args": REFUND}]}, {"text": "Refunded."}]
TALK = [{"text": "One."}, {"text": "Two."}]


def worker_version(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, str]:
    """Run the command; gives the state of each version that it lists."""
    capsys.readouterr()
    call_command("worker_version", *words)
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines() if "\t" in line]
    return {name: state for name, state, _ in lines}


def changed_code(place: Path) -> Path:
    """A copy of the code with a Flow that is not quite the same."""
    for part in ("dexweb", "sessions_app", "approvals_app", "templates", "static"):
        shutil.copytree(
            Path(settings.BASE_DIR, part),
            place / part,
            ignore=shutil.ignore_patterns("__pycache__", "vendor"),
        )
    shutil.copy(Path(settings.BASE_DIR, "manage.py"), place)
    turn = place / "sessions_app" / "flow" / "calls.py"
    code = turn.read_text()
    assert code.count('f"{len(calls)} result') == 1
    turn.write_text(code.replace('f"{len(calls)} result', 'f"B: {len(calls)} result'))
    return place


def test_sessions_that_wait_under_workers_of_a_finish_under_those_of_b_and_nothing_is_repeated(
    live: Live,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("DEXWEB_WORKER_VERSION", "A")
    old = live.worker("upgraded")
    assert worker_version(capsys, "--set-current", "A") == {"A": "current"}
    boss = live.person("boss", "refunds.approve")
    live.agent(TALK, name="talker", pool="upgraded")
    live.agent(SCRIPT, pool="upgraded")
    idle = live.idle(live.start(boss, "talker", "Hello"))
    waiting, queued = live.start(boss), live.start(boss)
    asked = [live.ask(session) for session in (waiting, queued)]
    actions.send_message(boss, queued.pk, "And then?", str(uuid.uuid4()))

    monkeypatch.setenv("DEXWEB_WORKER_VERSION", "B")
    live.worker("upgraded", code=changed_code(tmp_path / "new"))
    assert worker_version(capsys, "--ramp", "B", "50") == {"B": "ramping", "A": "current"}
    assert worker_version(capsys, "--set-current", "B") == {"B": "current", "A": "draining"}
    assert old.stop() == 0

    for interrupt in asked:
        live.decide(boss, interrupt)
    actions.send_message(boss, idle.pk, "Go on", str(uuid.uuid4()))
    live.idle(idle, turn=2)
    live.idle(waiting)
    until(lambda: queued.steps.filter(turn=2, type="RunModel", status="completed").exists())
    live.idle(queued, turn=2)

    assert len(live.ledger("refunds")) == 2
    for session in (waiting, queued):
        assert live.call(session, "issue_refund").attempts == 1
        assert session.steps.get(type="ResumeTurn").detail == "B: 1 result"
        assert session.events.filter(type="approval.decided").count() == 1
    for session, turns in ((idle, 2), (waiting, 1), (queued, 2)):
        assert [turn.state for turn in session.turns.all()] == ["completed"] * turns
        assert session.messages.filter(state="consumed").count() == turns
        assert_stream_is_whole(session)


def test_workers_to_which_the_engine_gives_nothing_are_said_to_serve_nobody(
    live: Live,
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    worker_version(capsys, "--set-current", "")
    monkeypatch.setenv("DEXWEB_WORKER_VERSION", "early")
    live.worker("ahead")
    ann = live.person("ann")
    live.agent(TALK, name="talker", pool="ahead")
    client.force_login(ann)
    session = live.start(ann, "talker", "Hello")

    until(lambda: "get nothing to do" in page(client, "/workers/"), "the page to say so")
    assert '--set-current "early"' in page(client, "/workers/")
    pool = next(p for p in client.get("/api/v1/workers").json()["pools"] if p["name"] == "ahead")
    assert (pool["missing"], pool["worker_version"]) == (True, "")
    assert [row["deployment"] for row in pool["workers"]] == ["early"]
    assert "not begun yet" in page(client, f"/sessions/{session.pk}/?tab=conversation")

    monkeypatch.setattr(up, "POOL", "ahead")
    monkeypatch.setattr(settings, "DEXWEB_WORKER_VERSION", "early")
    assert "given to workers without a version, and this one is of" in up.why_left_out()
    assert worker_version(capsys, "--set-current", "early")["early"] == "current"
    assert up.why_left_out() == ""
    live.idle(session)
    until(lambda: "get nothing to do" not in page(client, "/workers/"), "the page to say so")
    worker_version(capsys, "--set-current", "")


def page(client: Client, address: str) -> str:
    return client.get(address).content.decode()


def test_a_version_that_no_worker_has_is_refused_in_words(
    temporal_engine: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dexweb.engine.versions.SEEN_LIMIT", 0.0)
    with pytest.raises(CommandError, match="Start one with DEXWEB_WORKER_VERSION=never-built"):
        call_command("worker_version", "--set-current", "never-built")
    with pytest.raises(CommandError, match="“half” is not a share"):
        call_command("worker_version", "--ramp", "never-built", "half")


def test_the_command_ends_in_order_however_it_went(temporal_engine: object) -> None:
    run = [sys.executable, "manage.py", "worker_version"]
    calls = [[], ["--ramp", "never-built", "half"]]
    processes = [
        subprocess.Popen(run + words, cwd=settings.BASE_DIR, stderr=subprocess.PIPE)
        for words in calls
    ]
    said = [process.communicate(timeout=60)[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 1], said
