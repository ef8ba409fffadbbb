"""Replays as a worker would make them."""

from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer

from dexweb.engine.codec import data_converter
from dexweb.engine.worker import BUILD_ID, SANDBOX
from sessions_app.flow.session import SessionFlow

#: Ends of what a Flow waits for.
NEWS = (
    *(f"ACTIVITY_TASK_{end}" for end in ("COMPLETED", "FAILED", "TIMED_OUT", "CANCELED")),
    *(f"CHILD_WORKFLOW_EXECUTION_{end}" for end in ("STARTED", "COMPLETED", "FAILED", "CANCELED")),
    "TIMER_FIRED",
)


def replayer() -> Replayer:
    return Replayer(
        workflows=[SessionFlow],
        data_converter=data_converter(),
        workflow_runner=SANDBOX,
        build_id=BUILD_ID,
        # A busy machine is no deadlock.
        debug_mode=True,
    )


async def assert_replays(history: WorkflowHistory) -> None:
    """The code of today makes of it what was made of it; and so would a worker that comes in between."""
    await replayer().replay_workflow(history)
    assert quiet_tasks(history) == [], "workflow tasks that left nothing in the history"


def quiet_tasks(history: WorkflowHistory) -> list[int]:
    """Ids of the ends of workflow tasks that had news, left nothing, and were followed by another.

    The end of an activity that the Flow itself had canceled is no news: it does not wait for it.
    """
    scheduled = EventType.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED
    completed = EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED
    found, news, canceled = [], False, set()
    for event, after in zip(history.events, history.events[1:], strict=False):
        if event.event_type == completed:
            if news and after.event_type == scheduled:
                found.append(event.event_id)
            news = False
        elif event.HasField("activity_task_cancel_requested_event_attributes"):
            canceled.add(event.activity_task_cancel_requested_event_attributes.scheduled_event_id)
        elif EventType.Name(event.event_type).endswith(NEWS):
            ended = getattr(event, event.WhichOneof("attributes") or "")
            news |= getattr(ended, "scheduled_event_id", 0) not in canceled
    return found
