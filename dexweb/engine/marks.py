"""A mark in the history where a workflow task would leave nothing.

A worker that takes a session over makes its state up from the history. The engine's library then
takes a task that ended without a command for part of the next one, if that one begins with an update,
and takes the two apart at the next replay (temporalio 1.35,
https://github.com/temporalio/sdk-rust/issues/1146): what came second comes first then, and the session
stands still for good. With the marks no task that had something to do ends without a command.
"""

from collections.abc import Callable

from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.worker import WorkflowInstance, WorkflowInstanceDetails
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

from sessions_app.flow.state import MARKS

Activate = Callable[[WorkflowActivation], WorkflowActivationCompletion]
#: What a replay does not see, or sees in what the Flow answers: not to be judged by.
UNTOLD = ("do_update", "query_workflow", "remove_from_cache", "notify_has_patch")


class MarkingRunner(SandboxedWorkflowRunner):
    """Leaves the marks for each Flow that asks for them by the patch `MARKS`."""

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        instance = super().create_instance(det)
        instance.activate = _marking(instance.activate)  # type: ignore[method-assign, assignment]
        return instance


def _marking(activate: Activate) -> Activate:
    asked_for = False

    def activated(given: WorkflowActivation) -> WorkflowActivationCompletion:
        nonlocal asked_for
        done = activate(given)
        if not done.HasField("successful"):
            return done
        commands = done.successful.commands
        asked_for |= any(command.set_patch_marker.patch_id == MARKS for command in commands)
        # A refused update leaves nothing in the history.
        left = any(not command.update_response.HasField("rejected") for command in commands)
        woken = any(job.WhichOneof("variant") not in UNTOLD for job in given.jobs)
        if asked_for and woken and not left:
            memo = commands.add().modify_workflow_properties.upserted_memo
            memo.fields["quiet"].metadata["encoding"] = b"json/plain"
            memo.fields["quiet"].data = b"true"
        return done

    return activated
