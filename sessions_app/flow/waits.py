"""Calls of built-in tools that wait: for a person's answer, or for a moment. They run no activity."""

from __future__ import annotations

import asyncio

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from sessions_app.flow import questions, rules
    from sessions_app.flow.fact import CallClosed, StepChanged
    from sessions_app.flow.scope import Scope
    from sessions_app.flow.state import ToolCallPlan


def step_type(call: ToolCallPlan) -> str:
    """The type of the Step that ``call`` waits in; "" when it waits in none."""
    if call.questions:
        return "AwaitAnswer"
    return "DurableWait" if call.until else ""


async def run(scope: Scope, call: ToolCallPlan, step: StepChanged) -> str:
    """Bring a waiting call to its outcome."""
    if step.type == "AwaitAnswer":
        return await _await_answer(scope, call, step)
    return await _wait_durably(scope, call, step)


async def _await_answer(scope: Scope, call: ToolCallPlan, step: StepChanged) -> str:
    interrupt = scope.interrupts.ask_question(call, step)
    scope.show_phase()
    try:
        await scope.facts.flush()
        await scope.interrupts.wait(interrupt)
    except asyncio.CancelledError:
        if interrupt.state == "pending":
            scope.interrupts.close(interrupt, "canceled")
        raise
    finally:
        scope.show_phase()
    if interrupt.state != "answered":
        # Whoever ended the wait without an answer has said why.
        scope.close(call, step, "canceled", rules.unanswered_words(interrupt.reason))
        scope.steps.change(step, "canceled", outcome=interrupt.state, detail=interrupt.reason)
        return "canceled"
    by = interrupt.by.name if interrupt.by else ""
    result = questions.as_result(call.questions, interrupt.answers, by)
    scope.facts.add(
        CallClosed("call_closed", call.call_id, step.step_id, "completed", "", result=result)
    )
    scope.steps.change(step, "completed", outcome="answered", detail=f"by {by}")
    return "completed"


async def _wait_durably(scope: Scope, call: ToolCallPlan, step: StepChanged) -> str:
    timer = scope.timers.set(call, step)
    scope.show_phase()
    try:
        await scope.facts.flush()
        await scope.timers.wait(timer)
    except asyncio.CancelledError:
        scope.timers.drop(timer)
        raise
    finally:
        scope.show_phase()
    waited = (workflow.now() - timer.since).total_seconds()
    by = timer.skipped_by.name if timer.skipped_by else ""
    words = rules.skipped_words(by, waited) if by else rules.waited_words(timer.until)
    scope.close(call, step, "completed", words)
    scope.steps.change(step, "completed", outcome="completed", detail=words)
    return "completed"
