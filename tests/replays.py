"""Replays as a worker would make them."""

from temporalio.worker import Replayer

from dexweb.engine.codec import data_converter
from dexweb.engine.worker import BUILD_ID, SANDBOX
from sessions_app.flow.session import SessionFlow


def replayer() -> Replayer:
    return Replayer(
        workflows=[SessionFlow],
        data_converter=data_converter(),
        workflow_runner=SANDBOX,
        build_id=BUILD_ID,
        # A busy machine is no deadlock.
        debug_mode=True,
    )
