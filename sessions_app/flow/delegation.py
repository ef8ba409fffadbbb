"""Calls of `delegate`: another agent's session, begun, waited for, and called off with the turn."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from temporalio import workflow
from temporalio.common import WorkflowIDReusePolicy
from temporalio.exceptions import (
    ActivityError,
    ChildWorkflowError,
    TerminatedError,
    TimeoutError,
    WorkflowAlreadyStartedError,
)

with workflow.unsafe.imports_passed_through():
    from sessions_app.flow import rules
    from sessions_app.flow.fact import StepChanged
    from sessions_app.flow.queues import flow_queue
    from sessions_app.flow.scope import Scope
    from sessions_app.flow.state import (
        BEGIN_DELEGATION,
        END_DELEGATION,
        SESSION,
        Approval,
        CallToolInput,
        DelegationBegun,
        EndDelegationInput,
        SessionInput,
        ToolCallPlan,
        ToolCallResult,
    )

RECORD_TIME = timedelta(seconds=30)


async def run(
    scope: Scope, call: ToolCallPlan, step: StepChanged, approval: Approval | None
) -> ToolCallResult:
    """Bring a delegation to its outcome. When the turn is canceled, the child is, and is waited for."""
    begun = await _begin(scope, call, step, approval)
    if begun is not None and begun.result is not None:
        return begun.result
    ended = ""
    if begun is not None and begun.child is not None and not scope.canceled:
        ended = await _child(scope, begun.child)
    return await _end(scope, call, step, ended)


async def _begin(
    scope: Scope, call: ToolCallPlan, step: StepChanged, approval: Approval | None
) -> DelegationBegun | None:
    """None when it was canceled: then only the rows know how far it came."""
    context = scope.context(step, 1)
    try:
        begun: DelegationBegun = await workflow.execute_activity(
            BEGIN_DELEGATION,
            CallToolInput(context, scope.given.agent, call, approval, True),
            result_type=DelegationBegun,
            start_to_close_timeout=RECORD_TIME,
            heartbeat_timeout=timedelta(seconds=scope.limits.heartbeat),
            cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
            summary=f"{step.step_id} {call.tool}",
        )
    except ActivityError as error:
        if rules.reach_of(error) != rules.Reach.CANCELED:
            raise
        return None
    scope.facts.confirm(context.facts)
    return begun


async def _child(scope: Scope, child: SessionInput) -> str:
    """How the child's Flow ended; its answer is in its rows. "" when it may never have started."""
    try:
        handle = await workflow.start_child_workflow(
            SESSION,
            child,
            id=child.session_id,
            task_queue=flow_queue(child.pool),
            result_type=str,
            # Whoever ends a session by force ends what it began; all else waits for its children.
            parent_close_policy=workflow.ParentClosePolicy.TERMINATE,
            id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
        )
        status: str = await handle
        return status
    except WorkflowAlreadyStartedError:
        return "failed"
    except ChildWorkflowError as error:
        return _ended_as(error)
    except asyncio.CancelledError:
        if not scope.canceled:
            raise
        return ""


def _ended_as(error: ChildWorkflowError) -> str:
    if isinstance(error.cause, TerminatedError):
        return "terminated"
    if isinstance(error.cause, TimeoutError):
        return "timed_out"
    return "failed"


async def _end(scope: Scope, call: ToolCallPlan, step: StepChanged, ended: str) -> ToolCallResult:
    context = scope.context(step, 1)
    result: ToolCallResult = await workflow.execute_activity(
        END_DELEGATION,
        EndDelegationInput(context, call.call_id, ended),
        result_type=ToolCallResult,
        start_to_close_timeout=RECORD_TIME,
        heartbeat_timeout=timedelta(seconds=scope.limits.heartbeat),
    )
    scope.facts.confirm(context.facts)
    return result
