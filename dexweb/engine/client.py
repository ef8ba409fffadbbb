"""The engine's door: what people and programs may ask of a session.

Every surface goes through `SessionEngine`. It answers, or raises a typed error within the time that
``DEXWEB_ENGINE_TIMEOUT`` allows; it never hangs. The same request id asks the same thing again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import WorkflowTaskFailedCause
from temporalio.api.workflowservice.v1 import (
    GetWorkflowExecutionHistoryRequest,
    GetWorkflowExecutionHistoryReverseRequest,
)
from temporalio.client import (
    Client,
    WorkflowHandle,
    WorkflowUpdateFailedError,
    WorkflowUpdateHandle,
    WorkflowUpdateStage,
)
from temporalio.client import WorkflowUpdateRPCTimeoutOrCancelledError as UpdateTimedOut
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import ApplicationError, WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from dexweb.engine import backlog, embedded, errors
from dexweb.engine.codec import StateCodec, data_converter
from sessions_app.flow import state
from sessions_app.flow.queues import flow_queue

UNHANDLED_COMMAND = WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND
#: What a worker's failure is called that could not decrypt a session's state.
UNREADABLE = errors.EngineStateUnreadable.__name__
WHY_SHOWN = 500
LOCK_RETRY_LIMIT = 2.0
ANSWER_LIMIT = 15.0
# What a call gets whose server is away, dies under it, is just coming up, or has too much to do.
AWAY = (
    RPCStatusCode.UNAVAILABLE,
    RPCStatusCode.DEADLINE_EXCEEDED,
    RPCStatusCode.CANCELLED,
    RPCStatusCode.UNKNOWN,
    RPCStatusCode.INTERNAL,
    RPCStatusCode.ABORTED,
    RPCStatusCode.RESOURCE_EXHAUSTED,
)


async def connect(address: str, lazy: bool = False) -> Client:
    """A connection that speaks the Flow's data types."""
    return await Client.connect(
        address,
        namespace=settings.DEXWEB_TEMPORAL_NAMESPACE,
        data_converter=data_converter(),
        lazy=lazy,
    )


@dataclass(frozen=True)
class EngineSnapshot:
    """How the engine itself sees a session. `status` is the engine's word, in lower case.

    `task_attempt`: how often workers have tried to go on with it, 0 while there is nothing to do.
    """

    status: str
    run_id: str
    pool: str
    history_events: int
    task_attempt: int
    started_at: datetime
    closed_at: datetime | None


class SessionEngine:
    """One async method per RPC. Cheap to make; connections are shared by address and event loop."""

    _clients: dict[tuple[str, int], Client] = {}

    def __init__(self, timeout: float | None = None) -> None:
        self.timeout = timeout or settings.DEXWEB_ENGINE_TIMEOUT

    async def client(self) -> Client:
        """A connection to the engine. Raises `EngineUnavailable`."""
        try:
            address = embedded.engine_address()
        except embedded.EngineNotFound as error:
            raise errors.EngineUnavailable() from error
        key = (address, id(asyncio.get_running_loop()))
        if key not in self._clients:
            if len(self._clients) > 8:
                self._clients.clear()
            self._clients[key] = await connect(address, lazy=True)
        return self._clients[key]

    # RPCs -------------------------------------------------------------------------------------

    async def start_session(self, given: state.SessionInput) -> str:
        """Start the Flow; starting the same id again changes nothing. Returns the run's id."""
        async with self._reachable():
            client = await self.client()
            try:
                handle = await client.start_workflow(
                    state.SESSION,
                    given,
                    id=given.session_id,
                    task_queue=flow_queue(given.pool),
                    id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
                    id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                )
            except WorkflowAlreadyStartedError:
                return ""
            return handle.first_execution_run_id or ""

    async def send_message(self, session_id: str, rpc: state.SendMessage) -> state.RpcAnswer:
        """Queue a message. Raises BlankMessage, TooLarge, QuestionOpen, SessionClosed."""
        return await self._update(session_id, "send_message", rpc)

    async def edit_queued(self, session_id: str, rpc: state.EditQueued) -> state.RpcAnswer:
        """Put another text in a waiting message. Raises MessageNotFound and what a message raises."""
        return await self._update(session_id, "edit_queued", rpc)

    async def delete_queued(self, session_id: str, rpc: state.DeleteQueued) -> state.RpcAnswer:
        """Withdraw a waiting message. Raises MessageNotFound."""
        return await self._update(session_id, "delete_queued", rpc)

    async def steer(self, session_id: str, rpc: state.Steer) -> state.RpcAnswer:
        """Have a waiting message read before the next model call. Raises MessageNotFound."""
        return await self._update(session_id, "steer", rpc)

    async def update_settings(self, session_id: str, rpc: state.UpdateSettings) -> state.RpcAnswer:
        """Change settings from the next turn on. Raises StaleSettings, TooLarge."""
        return await self._update(session_id, "update_settings", rpc)

    async def resolve_interrupt(
        self, session_id: str, rpc: state.ResolveInterrupt
    ) -> state.RpcAnswer:
        """Decide. Raises RpcLockConflict, InterruptAlreadyDecided, InterruptExpired, StaleInterrupt,
        InterruptNotFound."""
        return await self._update(session_id, "resolve_interrupt", rpc)

    async def hold_interrupt(self, session_id: str, rpc: state.HoldInterrupt) -> state.RpcAnswer:
        """Put a person's name on an interrupt, or take it over. Raises RpcLockConflict."""
        return await self._update(session_id, "hold_interrupt", rpc)

    async def release_interrupt(
        self, session_id: str, rpc: state.ReleaseInterrupt
    ) -> state.RpcAnswer:
        """Let go of a hold. Raises RpcLockConflict when another person has it."""
        return await self._update(session_id, "release_interrupt", rpc)

    async def extend_deadline(self, session_id: str, rpc: state.ExtendDeadline) -> state.RpcAnswer:
        """Move a deadline. Raises InterruptAlreadyDecided, InterruptExpired, DeadlineInPast,
        DeadlineNotLater, DeadlineTooFar."""
        return await self._update(session_id, "extend_deadline", rpc)

    async def answer_question(self, session_id: str, rpc: state.AnswerQuestion) -> state.RpcAnswer:
        """Answer an open question. Raises InvalidArguments, InterruptAlreadyDecided, StaleInterrupt,
        InterruptNotFound, RpcLockConflict."""
        return await self._update(session_id, "answer_question", rpc)

    async def skip_wait(self, session_id: str, rpc: state.SkipWait) -> state.RpcAnswer:
        """Go on without waiting for a timer any longer. Raises NotWaiting when it is over."""
        return await self._update(session_id, "skip_wait", rpc)

    async def cancel_turn(self, session_id: str, rpc: state.CancelTurn) -> state.RpcAnswer:
        """Cancel the running turn; its calls get their outcomes. Raises NoTurn."""
        return await self._update(session_id, "cancel_turn", rpc)

    async def raise_spend(self, session_id: str, rpc: state.RaiseSpend) -> state.RpcAnswer:
        """Let a blocked session spend more than its budgets. Raises NotBlocked, RpcLockConflict."""
        return await self._update(session_id, "raise_spend", rpc)

    async def stop(self, session_id: str, rpc: state.Stop) -> state.RpcAnswer:
        """End the session: complete (once what is queued is done), cancel or fail. Raises SessionClosed."""
        return await self._update(session_id, "stop", rpc)

    async def terminate(self, session_id: str, reason: str) -> None:
        """End the session at once, without its Flow; works without a worker. Raises SessionClosed."""
        # The engine keeps this reason as it is given; our row has it anyway.
        told = None if settings.DEXWEB_ENCRYPT_ENGINE_STATE else reason or None
        async with self._reachable():
            handle = (await self.client()).get_workflow_handle(session_id)
            try:
                await handle.terminate(reason=told)
            except RPCError as error:
                if error.status != RPCStatusCode.NOT_FOUND:
                    raise
                raise await self._closed_or_unknown(handle) from error

    async def snapshot(self, session_id: str) -> EngineSnapshot:
        """How the engine sees the session. Raises SessionNotFound."""
        async with self._reachable():
            handle = (await self.client()).get_workflow_handle(session_id)
            try:
                found = await handle.describe()
            except RPCError as error:
                if error.status != RPCStatusCode.NOT_FOUND:
                    raise
                raise errors.SessionNotFound(session_id=session_id) from error
            return EngineSnapshot(
                status=found.status.name.lower() if found.status else "unknown",
                run_id=found.run_id,
                pool=found.task_queue.removeprefix("dexweb-"),
                history_events=found.history_length,
                task_attempt=found.raw_description.pending_workflow_task.attempt,
                started_at=found.start_time,
                closed_at=found.close_time,
            )

    async def backlogs(self, pools: Iterable[str]) -> dict[str, backlog.PoolBacklog]:
        """What waits in the queues of each pool. Raises `EngineUnavailable`."""
        async with self._reachable():
            try:
                return await backlog.of_pools(await self.client(), pools)
            except RPCError as error:
                raise errors.EngineUnavailable() from error

    async def why_stuck(
        self, session_id: str
    ) -> errors.NoWorker | errors.EngineStateUnreadable | None:
        """Why the last worker could not go on with a session; None if it went on, or just ended."""
        async with self._reachable():
            client = await self.client()
            page = await client.workflow_service.get_workflow_execution_history_reverse(
                GetWorkflowExecutionHistoryReverseRequest(
                    namespace=client.namespace,
                    execution=WorkflowExecution(workflow_id=session_id),
                    maximum_page_size=20,
                )
            )
            for event in page.history.events:
                if event.HasField("workflow_task_completed_event_attributes"):
                    break
                told = event.workflow_task_failed_event_attributes
                # This one only says that news came while the worker was at it.
                if not told.HasField("failure") or told.cause == UNHANDLED_COMMAND:
                    continue
                if told.failure.application_failure_info.type == UNREADABLE:
                    return errors.EngineStateUnreadable()
                try:
                    why = str(await client.data_converter.decode_failure(told.failure))
                except errors.EngineStateUnreadable as error:
                    return error
                return errors.NoWorker(why=why)
            return None

    async def check_readable(self, session_id: str) -> None:
        """Whether this process has the key of a session's state. Raises EngineStateUnreadable."""
        async with self._reachable():
            client = await self.client()
            page = await client.workflow_service.get_workflow_execution_history(
                GetWorkflowExecutionHistoryRequest(
                    namespace=client.namespace,
                    execution=WorkflowExecution(workflow_id=session_id),
                    maximum_page_size=1,
                )
            )
            for event in page.history.events:
                started = event.workflow_execution_started_event_attributes
                await StateCodec().decode(started.input.payloads)

    async def healthy(self) -> bool:
        """Whether the engine answers, within two seconds."""
        try:
            async with asyncio.timeout(2):
                client = await self.client()
                return await client.service_client.check_health(timeout=timedelta(seconds=2))
        except (TimeoutError, RPCError, RuntimeError, errors.EngineUnavailable):
            return False

    # How ----------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _reachable(self) -> AsyncIterator[None]:
        """What goes wrong on the way to the engine, as `EngineUnavailable`, in bounded time."""
        try:
            async with asyncio.timeout(self.timeout):
                yield
        except TimeoutError as error:
            raise errors.EngineUnavailable() from error
        except RPCError as error:
            if error.status in AWAY:
                raise errors.EngineUnavailable() from error
            raise
        except RuntimeError as error:
            if "connect" not in str(error).lower():
                raise
            raise errors.EngineUnavailable() from error

    async def _update(self, session_id: str, name: str, rpc: Any) -> state.RpcAnswer:
        """Send one RPC; a short lock conflict and a busy session are retried with back-off."""
        loop = asyncio.get_running_loop()
        give_up, pause = loop.time() + LOCK_RETRY_LIMIT, 0.005
        while True:
            try:
                return await self._send(session_id, name, rpc)
            except errors.RpcLockConflict as conflict:
                if conflict.lock_kind != "rpc" or loop.time() + pause > give_up:
                    raise
            except RPCError as error:
                if error.status == RPCStatusCode.FAILED_PRECONDITION:
                    # The engine takes nothing for a session that workers have failed to go on with.
                    raise await self._away(await self.client(), session_id) from error
                if error.status != RPCStatusCode.RESOURCE_EXHAUSTED or loop.time() > give_up:
                    raise errors.EngineUnavailable() from error
            await asyncio.sleep(pause)
            pause = min(pause * 2, 0.1)

    async def _send(self, session_id: str, name: str, rpc: Any) -> state.RpcAnswer:
        client: Client | None = None
        try:
            async with asyncio.timeout(self.timeout):
                client = await self.client()
                handle = client.get_workflow_handle(session_id)
                update = await handle.start_update(
                    name,
                    rpc,
                    id=rpc.request_id,
                    wait_for_stage=WorkflowUpdateStage.ACCEPTED,
                    result_type=state.RpcAnswer,
                )
            return await self._answer(update, rpc.request_id)
        except WorkflowUpdateFailedError as error:
            raise _typed(error) from error
        except (TimeoutError, UpdateTimedOut) as error:
            raise await self._away(client, session_id) from error
        except RPCError as error:
            if error.status == RPCStatusCode.NOT_FOUND:
                raise await self._closed_or_unknown(handle) from error
            if error.status in AWAY and error.status != RPCStatusCode.RESOURCE_EXHAUSTED:
                raise await self._away(client, session_id) from error
            # Of too many at once, `_update` sends it again.
            raise
        except RuntimeError as error:
            if "connect" not in str(error).lower():
                raise
            raise errors.EngineUnavailable() from error

    async def _answer(self, update: WorkflowUpdateHandle[Any], request_id: str) -> state.RpcAnswer:
        """What an accepted RPC answers. Accepted is durable: one that takes long is not away."""
        try:
            async with asyncio.timeout(ANSWER_LIMIT):
                answer: state.RpcAnswer = await update.result()
                return answer
        except (TimeoutError, UpdateTimedOut):
            return state.RpcAnswer(request_id, datetime.now(UTC).isoformat(), "accepted")

    async def _away(self, client: Client | None, session_id: str) -> errors.DexwebError:
        """No answer in time: is it the engine, every worker of the pool, or one that cannot go on?"""
        if client is None or not await self.healthy():
            return errors.EngineUnavailable()
        try:
            found = await self.snapshot(session_id)
            stuck = await self.why_stuck(session_id) if found.task_attempt > 1 else None
        except errors.DexwebError as error:
            return error
        if isinstance(stuck, errors.EngineStateUnreadable):
            return stuck
        return errors.NoWorker(pool=found.pool, why=stuck.why[:WHY_SHOWN] if stuck else "")

    async def _closed_or_unknown(self, handle: WorkflowHandle[Any, Any]) -> errors.DexwebError:
        try:
            found = await handle.describe()
        except RPCError as error:
            if error.status in AWAY:
                return errors.EngineUnavailable()
            return errors.SessionNotFound(session_id=handle.id)
        status = found.status.name.lower() if found.status else ""
        return errors.SessionClosed(session_status=status)


def _typed(error: WorkflowUpdateFailedError) -> errors.DexwebError:
    cause = error.cause
    if isinstance(cause, ApplicationError) and cause.type in errors.BY_CODE:
        details = cause.details[0] if cause.details else {}
        return errors.from_details(cause.type, details)
    if isinstance(cause, ApplicationError) and cause.type == "AcceptedUpdateCompletedWorkflow":
        return errors.SessionClosed()
    raise error
