"""Histories that were saved replay on today's Flow: code can be rolled out while sessions wait."""

from pathlib import Path

import pytest
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer

from dexweb.engine.codec import data_converter
from dexweb.engine.worker import BUILD_ID, SANDBOX
from sessions_app.flow.session import SessionFlow

HISTORIES = sorted(Path(__file__).parent.parent.joinpath("histories").glob("*.json"))


def test_there_are_saved_histories() -> None:
    assert HISTORIES


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem)
async def test_a_saved_history_replays(path: Path) -> None:
    history = WorkflowHistory.from_json("saved", path.read_text())
    replayer = Replayer(
        workflows=[SessionFlow],
        data_converter=data_converter(),
        workflow_runner=SANDBOX,
        build_id=BUILD_ID,
    )
    await replayer.replay_workflow(history)
