"""The Steps CallTool and CallSingleAttemptTool: one attempt of one tool call."""

from dataclasses import dataclass
from typing import Any

from channels.db import database_sync_to_async as in_database
from django.conf import settings
from django.utils import timezone
from temporalio import activity

from approvals_app.dispatch import repeats_too_much, void_reason
from approvals_app.projection import invalidate
from sessions_app import arguments
from sessions_app.flow import rules
from sessions_app.flow.state import (
    CALL_TOOL,
    RECONCILE_CALL,
    Approval,
    CallToolInput,
    ReconcileInput,
    StepContext,
    ToolCallResult,
)
from sessions_app.flow.terms import ApprovalPolicy
from sessions_app.models import Agent, Session, Step, ToolCall
from sessions_app.projection import end_call, locked, recording
from sessions_app.standing import standing
from sessions_app.steps import reports, sources
from sessions_app.steps.heartbeat import heartbeats
from sessions_app.stream.append import append
from sessions_app.text import keepable
from sessions_app.tools.mcp import (
    ConnectionLost,
    ConnectionSpec,
    ConnectionUnavailable,
    ToolPool,
    ToolRaised,
)

#: Of the Step, by its call's outcome; all others failed.
STEP_STATUS = {"completed": Step.Status.COMPLETED, "canceled": Step.Status.CANCELED}


@dataclass(frozen=True)
class Begun:
    """An attempt that is marked as begun: from here on it may have acted.

    ``before``: the attempt that had begun before it and was cut off; 0 when none was.
    """

    connection: ConnectionSpec
    args: dict[str, Any]
    before: int = 0


class CallTool:
    """The activity, with the tool connections of its worker."""

    def __init__(self, pool: ToolPool) -> None:
        self._pool = pool

    @activity.defn(name=CALL_TOOL)
    async def run(self, given: CallToolInput) -> ToolCallResult:
        async with heartbeats():
            changed = await self._tool_changed(given) if given.approval else False
            begun = await in_database(begin)(given, changed)
            if isinstance(begun, ToolCallResult):
                return begun
            result, whole = await self._call(given, begun)
            if begun.before:
                effect, last = given.call.effect, given.last_attempt
                result = rules.not_denied(effect, given.call.tool, result, last)
            if result.retryable and not given.last_attempt:
                if not result.ran:
                    await in_database(take_back)(given, begun)
                return result
            return await in_database(end)(given, result, whole)

    async def _tool_changed(self, given: CallToolInput) -> bool:
        """Whether the tool is another one by now than the one whose call was approved."""
        asked = await in_database(as_asked)(given)
        if asked is None:
            return False
        connection, schema = asked
        try:
            tools = await self._pool.list_tools(connection)
        except ConnectionUnavailable:
            # Then it does not run either, and the call itself says why.
            return False
        now = [dict(tool.schema) for tool in tools if tool.name == given.call.tool]
        return now != [schema]

    async def _call(self, given: CallToolInput, begun: Begun) -> tuple[ToolCallResult, str]:
        """(how the attempt ended, the whole result for people)."""
        call = given.call
        progress = Progress(given.step, call.call_id, call.tool)
        try:
            answer = await self._pool.call_tool(
                begun.connection, call.tool, begun.args, call.call_id, progress.tell, call.timeout
            )
        except ToolRaised as error:
            whole = for_people(keepable(str(error)), truncated=False)
            words, cut = for_model(whole)
            return ToolCallResult("failed", words), whole if cut else ""
        except ConnectionUnavailable as error:
            return rules.unreachable(call.tool, keepable(str(error))), ""
        except ConnectionLost as error:
            why, last = keepable(str(error)).rstrip("."), given.last_attempt
            return rules.cut_off(call.effect, call.tool, why, last), ""
        whole = for_people(keepable(answer.text), answer.truncated)
        words, cut = for_model(whole)
        return ToolCallResult("completed", words if cut else ""), whole


def for_people(text: str, truncated: bool) -> str:
    """What is kept of a result, with a note where that is not all of it."""
    kept, size = _start(text, settings.DEXWEB_LIMIT_RESULT_KEPT)
    if not truncated and kept == text:
        return text
    return f"{kept}\n[Cut here: only the first {size:,} bytes are kept.]"


def for_model(text: str) -> tuple[str, bool]:
    """(what the model reads of a result, whether that is less than the whole)."""
    kept, _ = _start(text, settings.DEXWEB_LIMIT_RESULT)
    if kept == text:
        return text, False
    whole = len(text.encode("utf-8", "replace"))
    return f"{kept}\n[Cut here: {whole:,} bytes in all, of which people can see more.]", True


def _start(text: str, most: int) -> tuple[str, int]:
    """(the first ``most`` bytes of ``text``, how many they are)."""
    data = text.encode("utf-8", "replace")
    if len(data) <= most:
        return text, len(data)
    kept = data[:most].decode("utf-8", "ignore")
    return kept, len(kept.encode())


def as_asked(given: CallToolInput) -> tuple[ConnectionSpec, dict[str, Any]] | None:
    """The tool's connection, and its schema when a person was asked; None where either is not known."""
    call = ToolCall.objects.get(session=given.step.session_id, call_id=given.call.call_id)
    try:
        connection = sources.connection_of(sources.agent_named(given.agent), given.call.tool)
    except ConnectionUnavailable:
        return None
    return (connection, call.schema) if connection and call.schema else None


def begin(given: CallToolInput, tool_changed: bool = False) -> Begun | ToolCallResult:
    """Record the start, check once more that it may run, and mark the attempt as begun."""
    context, plan = given.step, given.call
    with recording(context.session_id, context.facts) as session:
        call = session.calls.select_for_update().get(call_id=plan.call_id)
        step = reports.step_of(session, context)
        if call.outcome:
            return ToolCallResult(call.outcome, call.words)
        if context.attempt < step.attempt:
            # The engine has given this one up, and the next one is on its way.
            return ToolCallResult("failed", rules.DID_NOT_RUN, ran=False, retryable=True)
        if plan.effect == "write" and call.begun_attempt:
            # Whatever led here, a write that has begun is not begun again.
            return ended(session, step, call, rules.begun_before(plan.tool), "")
        agent = sources.with_policies(sources.agent_named(given.agent))
        refused = may_not_run(given, session, step, call, agent, tool_changed)
        if refused is not None:
            return refused
        try:
            connection = sources.connection_of(agent, plan.tool)
        except ConnectionUnavailable as error:
            return ended(session, step, call, _out_of_reach(given, call, str(error)), "")
        if connection is None:
            why = f"The connection of {plan.tool} is disabled or gone."
            return ended(session, step, call, _out_of_reach(given, call, why), "")
        before = call.begun_attempt
        args = mark_begun(session, step, call, context)
    return Begun(connection, args, before)


def may_not_run(
    given: CallToolInput,
    session: Session,
    step: Step,
    call: ToolCall,
    agent: Agent,
    tool_changed: bool = False,
) -> ToolCallResult | None:
    """The last check before a call runs: how it ends, recorded, when it must not; None when it may."""
    plan = given.call
    if not agent.enabled and not call.begun_attempt:
        return refuse(session, step, call, f"The agent {agent.name} is disabled.")
    if not agent.policy_for(plan.tool).enabled and not call.begun_attempt:
        return refuse(session, step, call, f"{plan.tool} was switched off.")
    if tool_changed and not call.begun_attempt:
        # Of a call that was made for another tool, nobody is to be asked again.
        void = f"{plan.tool} was changed by its server since this was asked."
        return _invalidated(session, step, call, given.approval, void, ask_again=None)
    args_hash = arguments.hash_of(arguments.parse(call.args))
    void = void_reason(given.approval, plan, agent, args_hash, begun=bool(call.begun_attempt))
    if not void:
        return None
    if call.begun_attempt:
        return ended(session, step, call, rules.not_again(plan, void), "")
    # Of other arguments than those that were asked for, or of a call that would be repeated
    # as it may not be by now, nobody is to be asked.
    policy = sources.approval_policy(agent, plan.tool) or plan.approval
    same = args_hash == plan.args_hash and not repeats_too_much(plan, agent)
    return _invalidated(session, step, call, given.approval, void, policy if same else None)


def refuse(session: Session, step: Step, call: ToolCall, why: str) -> ToolCallResult:
    """The call fails for ``why``, a sentence, before anything ran."""
    return ended(session, step, call, rules.did_not_run(why), "")


def mark_begun(
    session: Session, step: Step, call: ToolCall, context: StepContext, **told: str
) -> dict[str, Any]:
    """From here on the call may have acted. Returns the arguments; ``told`` goes into the event too."""
    args, now = arguments.parse(call.args), timezone.now()
    call.attempts = call.begun_attempt = context.attempt
    call.ran_hash = arguments.hash_of(args)
    call.started_at = call.started_at or now
    call.save()
    reports.started(session, step, context.attempt)
    payload = {"call_id": call.call_id, "tool": call.tool, **told}
    append(session, "tool.started", payload, now, context.step_id, context.attempt)
    return args


def _out_of_reach(given: CallToolInput, call: ToolCall, why: str) -> ToolCallResult:
    if call.begun_attempt:
        return rules.not_again(given.call, why)
    return rules.did_not_run(why)


def take_back(given: CallToolInput, begun: Begun) -> None:
    """The tool was never reached: the mark says again how far the attempts before came."""
    with locked(given.step.session_id) as session:
        call = session.calls.filter(call_id=given.call.call_id, outcome="")
        call.filter(begun_attempt=given.step.attempt).update(begun_attempt=begun.before)


def end(given: CallToolInput, result: ToolCallResult, whole: str) -> ToolCallResult:
    """Record the outcome. One that another has given meanwhile stands."""
    with locked(given.step.session_id) as session:
        call = session.calls.get(call_id=given.call.call_id)
        step = reports.step_of(session, given.step)
        if call.outcome:
            return ToolCallResult(call.outcome, call.words)
        return ended(session, step, call, result, whole)


def ended(
    session: Session, step: Step, call: ToolCall, result: ToolCallResult, whole: str
) -> ToolCallResult:
    """Record how the call ended; ``whole`` is its result for people."""
    end_call(session, call, step.step_id, result.outcome, result.words, timezone.now(), whole)
    status = STEP_STATUS.get(result.outcome, Step.Status.FAILED)
    reports.ended(session, step, status, result.outcome, result.words[:2000])
    return ToolCallResult(result.outcome, result.words[:2000], result.ran)


def _invalidated(
    session: Session,
    step: Step,
    call: ToolCall,
    approval: Approval | None,
    void: str,
    ask_again: ApprovalPolicy | None,
) -> ToolCallResult:
    """Nothing runs. With ``ask_again`` the Flow asks a person anew, else the call is over."""
    now = timezone.now()
    words = rules.invalidated_words(void, approved=approval is not None)
    interrupt_id = approval.interrupt_id if approval else ""
    invalidate(session, interrupt_id, now)
    if ask_again is None:
        end_call(session, call, step.step_id, "invalidated", words, now)
    else:
        payload = {"call_id": call.call_id, "tool": call.tool, "interrupt_id": interrupt_id}
        payload |= {"words": words, "session": standing(session)}
        append(session, "tool.invalidated", payload, now, step.step_id)
    reports.ended(session, step, Step.Status.CANCELED, "invalidated", words)
    return ToolCallResult("invalidated", words, ran=False, ask_again=ask_again)


@activity.defn(name=RECONCILE_CALL)
async def reconcile_call(given: ReconcileInput) -> ToolCallResult:
    """What became of an attempt that brought the engine no result, as the rows know it."""
    async with heartbeats():
        return await in_database(reconcile)(given)


def reconcile(given: ReconcileInput) -> ToolCallResult:
    context = given.step
    with recording(context.session_id, context.facts) as session:
        call = session.calls.get(call_id=given.call_id)
        if call.outcome:
            # It had ended and only the news was lost.
            return ToolCallResult(call.outcome, call.words)
        result = _reconciled(given, call)
        if result.retryable:
            return result
        step = reports.step_of(session, context)
        end_call(session, call, step.step_id, result.outcome, result.words, timezone.now())
        status = STEP_STATUS.get(result.outcome, Step.Status.FAILED)
        reports.ended(session, step, status, result.outcome, result.words)
    return result


def _reconciled(given: ReconcileInput, call: ToolCall) -> ToolCallResult:
    begun = call.begun_attempt >= given.step.attempt
    over = given.last_attempt or given.canceled
    if given.canceled and call.begun_attempt:
        return ToolCallResult(*rules.canceled_after(given.effect, call.tool))
    if given.canceled:
        return ToolCallResult("canceled", rules.canceled_words(call.tool), ran=False)
    if begun:
        return rules.cut_off(given.effect, call.tool, given.cut_off, over)
    retryable = given.effect != "write" and not over
    result = rules.not_reached(call.tool, given.cut_off, retryable)
    if call.begun_attempt:
        return rules.not_denied(given.effect, call.tool, result, over)
    return result


class Progress:
    """A tool's progress notes as live events, at most ten a second."""

    def __init__(self, context: StepContext, call_id: str, tool: str) -> None:
        self._context = context
        self._call = {"call_id": call_id, "tool": tool}
        self._last = 0.0

    async def tell(self, done: float, total: float | None, words: str | None) -> None:
        now = timezone.now().timestamp()
        if now - self._last < 0.1:
            return
        self._last = now
        payload = {**self._call, "done": done, "total": total, "words": keepable(words or "")[:500]}
        await in_database(self._append)(payload)

    def _append(self, payload: dict[str, Any]) -> None:
        with locked(self._context.session_id) as session:
            reports.live(session, self._context, [("tool.progress", payload)])
