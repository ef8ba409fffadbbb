"""Histories that were saved replay on today's Flow: code can be rolled out while sessions wait."""

import re
from pathlib import Path

import pytest
from temporalio.client import WorkflowHistory

from tests.replays import replayer

FOLDER = Path(__file__).parent.parent / "histories"
# A folder for each release, and `unreleased` for the code since the last one.
HISTORIES = sorted(FOLDER.glob("*/*.json"))


def test_every_folder_of_a_release_has_histories_and_none_lies_beside_them() -> None:
    assert HISTORIES
    assert {path.parent for path in HISTORIES} == set(FOLDER.iterdir())


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: f"{path.parent.name}/{path.stem}")
async def test_a_saved_history_replays(path: Path) -> None:
    history = WorkflowHistory.from_json("saved", path.read_text())
    await replayer().replay_workflow(history)


def test_the_flow_keeps_no_set_since_its_order_would_be_another_one_in_a_replay() -> None:
    flow = Path(__file__).parents[2] / "sessions_app" / "flow"
    kept = [
        f"{path.name}: {line.strip()}"
        for path in sorted(flow.rglob("*.py"))
        for line in path.read_text().splitlines()
        if re.search(r":\s*set\[|\bset\(\)", line)
    ]
    assert kept == []
