"""The Flow on the real engine, with Steps whose ends a test chooses."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from temporalio import activity
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker

from dexweb.engine.worker import BUILD_ID, SANDBOX
from sessions_app.flow import state, terms
from sessions_app.flow.queues import flow_queue, model_queue, tool_queue
from sessions_app.flow.session import SessionFlow
from tests import replays

ANN = terms.Actor(1, "ann")
POLICY = terms.ApprovalPolicy("refunds.approve", "high", 600.0, "reject")
CALL = state.ToolCallPlan("call-1", "shop__send_email", "idempotent", "hash", 60.0, attempts=3)
UNKNOWN = state.ToolCallResult("outcome_unknown", "Nobody knows.")


@dataclass
class Steps:
    """Answers of Steps. What ``stands`` names stands until `go`, once, having set `stood`; a call
    that is in ``gates`` is at work until its gate opens.
    """

    calls: list[state.ToolCallPlan]
    stands: str = ""
    attempt: state.ToolCallResult | None = None
    stood: asyncio.Event = field(default_factory=asyncio.Event)
    go: asyncio.Event = field(default_factory=asyncio.Event)
    gates: dict[str, asyncio.Event] = field(default_factory=lambda: defaultdict(asyncio.Event))
    asked: list[state.ReconcileInput] = field(default_factory=list)
    told: list[Any] = field(default_factory=list)
    found: state.ToolCallResult = UNKNOWN

    async def _at(self, what: str) -> None:
        if what == self.stands and not self.stood.is_set():
            self.stood.set()
            await self.go.wait()

    @activity.defn(name=state.RUN_MODEL)
    async def run_model(self, given: state.RunModelInput) -> state.RunModelResult:
        asks = given.step.turn == 1 and given.step.step_id == "RunModel-1"
        return state.RunModelResult(self.calls if asks else [], said_text=True)

    @activity.defn(name=state.RECORD_FACTS)
    async def record(self, given: state.RecordInput) -> int:
        self.told += [fact.body for fact in given.facts]
        for body in (fact.body for fact in given.facts):
            await self._at(f"{body.kind} {getattr(body, 'outcome', '')}".strip())
        return given.facts[-1].n

    @activity.defn(name=state.CALL_TOOL)
    async def call_tool(self, given: state.CallToolInput) -> state.ToolCallResult:
        if given.call.call_id in self.gates:
            await self.gates[given.call.call_id].wait()
        if self.attempt is None:
            raise ApplicationError("the connection broke")
        return self.attempt

    @activity.defn(name=state.RECONCILE_CALL)
    async def reconcile(self, given: state.ReconcileInput) -> state.ToolCallResult:
        self.asked.append(given)
        if (gate := f"reconcile {given.call_id}") in self.gates:
            await self.gates[gate].wait()
        await self._at("reconcile")
        return self.found


@asynccontextmanager
async def working(client: Client, pool: str, steps: Steps) -> AsyncIterator[None]:
    """Workers of ``pool`` whose Steps answer as ``steps`` says."""
    flow: dict[str, Any] = {"workflows": [SessionFlow], "workflow_runner": SANDBOX}
    kinds = [
        (flow_queue(pool), [steps.record, steps.reconcile], flow),
        (model_queue(pool), [steps.run_model], {}),
        (tool_queue(pool), [steps.call_tool], {}),
    ]
    async with AsyncExitStack() as running:
        for queue, activities, more in kinds:
            worker = Worker(
                client, task_queue=queue, activities=activities, build_id=BUILD_ID, **more
            )
            await running.enter_async_context(worker)
        yield


async def assert_replays(client: Client, session_id: str) -> None:
    await replays.assert_replays(await client.get_workflow_handle(session_id).fetch_history())
