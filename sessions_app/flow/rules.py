"""Pure decisions of the Flow: how far an attempt came, what follows, and in which words.

The words are said once, here: the model and people read the same.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from enum import StrEnum

from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    CancelledError,
    TimeoutError,
    TimeoutType,
)

from sessions_app.flow.state import RpcAnswer, ToolCallPlan, ToolCallResult
from sessions_app.flow.terms import DELEGATE, ApprovalPolicy, UserMessage


class Reach(StrEnum):
    """How far an attempt came that brought no result."""

    NEVER_TAKEN = "never_taken"
    CUT_OFF = "cut_off"
    CANCELED = "canceled"
    RAISED = "raised"
    HANDED_BACK = "handed_back"


#: What the engine's library says of an attempt that a stopping worker gave up.
WORKER_SHUTDOWN = "WorkerShutdown"
#: However often workers are stopped under a Step, its attempts end.
MOST_ATTEMPTS = 25


def reach_of(error: ActivityError) -> Reach:
    """Read it from the engine's failure. Only schedule-to-start is proof that nothing ran."""
    cause = error.cause
    if isinstance(cause, TimeoutError) and cause.type == TimeoutType.SCHEDULE_TO_START:
        return Reach.NEVER_TAKEN
    if isinstance(cause, TimeoutError):
        return Reach.CUT_OFF
    if isinstance(cause, CancelledError):
        return Reach.CANCELED
    if isinstance(cause, ApplicationError) and cause.type == WORKER_SHUTDOWN:
        return Reach.HANDED_BACK
    return Reach.RAISED


def cut_off_words(error: ActivityError) -> str:
    """Why an attempt brought no result, for people."""
    cause = error.cause
    if isinstance(cause, TimeoutError) and cause.type == TimeoutType.HEARTBEAT:
        return "the worker that ran it went away"
    if reach_of(error) == Reach.NEVER_TAKEN:
        return "no worker was free to run it again"
    if isinstance(cause, TimeoutError):
        return "it took longer than allowed"
    if isinstance(cause, CancelledError):
        return "it was canceled while it ran"
    if reach_of(error) == Reach.HANDED_BACK:
        return "the worker that ran it was stopped"
    return str(cause or error)


RUN_FULL = (
    "The turn has become longer than the engine can keep. Send another message: the agent goes on "
    "from here in a new turn."
)
DID_NOT_RUN = "It did not run and is safe to call again."


def never_taken(call: ToolCallPlan) -> ToolCallResult:
    """No worker ever took the attempt."""
    return ToolCallResult(
        "failed", f"No worker was free to run {call.tool}. {DID_NOT_RUN}", ran=False
    )


def waits_for_model(pool: str, seconds: float) -> str:
    """Nobody took a model call; it has cost nothing and goes on waiting."""
    return (
        f"No worker of the pool {pool} had a free slot for model calls in {seconds:g} s. "
        "It goes on waiting; start another worker, or one with more slots."
    )


def did_not_run(why: str, retryable: bool = False) -> ToolCallResult:
    """It is certain that the tool was not reached; ``why`` is a sentence."""
    return ToolCallResult("failed", f"{why} {DID_NOT_RUN}", ran=False, retryable=retryable)


def unreachable(tool: str, why: str) -> ToolCallResult:
    """Its server could not be asked."""
    return did_not_run(f"{tool} could not be reached: {why}", retryable=True)


def not_reached(tool: str, why: str, retryable: bool) -> ToolCallResult:
    """Its attempt ended before the tool was asked."""
    return did_not_run(f"{tool} was not reached: {why}.", retryable)


def cut_off(effect: str, tool: str, why: str, last: bool) -> ToolCallResult:
    """The outcome of an attempt that was cut off after it had begun, by effect (DESIGN's table)."""
    if effect == "write" or (effect == "idempotent" and last):
        return ToolCallResult("outcome_unknown", unknown_words(tool, why))
    return ToolCallResult("failed", f"{tool} was cut off: {why}.", retryable=not last)


EARLIER = "an earlier attempt was cut off"


def not_denied(effect: str, tool: str, result: ToolCallResult, last: bool) -> ToolCallResult:
    """That this attempt did not run says nothing of an earlier one that was cut off."""
    if result.ran or effect == "read":
        return result
    if last or not result.retryable:
        return ToolCallResult("outcome_unknown", unknown_words(tool, EARLIER))
    why = result.words.removesuffix(DID_NOT_RUN)
    return replace(result, words=f"{why}It may have run before: {EARLIER}.")


def begun_before(tool: str) -> ToolCallResult:
    """A write that has begun is not begun again."""
    return ToolCallResult("outcome_unknown", unknown_words(tool, "an earlier attempt had begun"))


def invalidated_words(void: str, approved: bool) -> str:
    what = "The approval no longer holds:" if approved else "It may not run as it was asked for:"
    return f"{what} {void} {DID_NOT_RUN}"


def invalid_words(why: str) -> str:
    """Of a call that the model made wrongly: repeating it as it is would not help."""
    return f"{why} It did not run."


def not_again(call: ToolCallPlan, void: str) -> ToolCallResult:
    """An attempt was cut off, and by now the call may not run another time."""
    if call.effect == "read":
        words = f"{call.tool} was cut off, and may not be called again as it was: {void}"
        return ToolCallResult("failed", words)
    why = f"an attempt was cut off, and it may not be repeated by now. {void}"
    return ToolCallResult("outcome_unknown", unknown_words(call.tool, why.rstrip(".")))


def unknown_words(tool: str, why: str) -> str:
    return (
        f"Whether {tool} took effect is not known: {why}. It may have run. "
        "It was not and will not be repeated by itself; check before you ask for it again."
    )


def rejected_words(tool: str, by: str, reason: str) -> str:
    said = f" The reason given: {reason}" if reason else " No reason was given."
    return f"{by} rejected this call of {tool}. It did not run.{said}"


def expired_words(tool: str) -> str:
    return f"Nobody decided on this call of {tool} before its deadline. It did not run."


def steered_words(by: str) -> str:
    return f"{by} steered the agent before this was decided."


def superseded_words(tool: str, reason: str) -> str:
    return f"{reason} So this call of {tool} was withdrawn undecided. It did not run."


def undecided(tool: str, state: str, by: str, reason: str) -> tuple[str, str]:
    """(outcome, words) of a call whose approval ended in ``state``, which is not approved."""
    if state == "rejected":
        return "rejected", rejected_words(tool, by, reason)
    if state == "superseded":
        return "canceled", superseded_words(tool, reason)
    return state, expired_words(tool)


#: Built-in tools do nothing but wait, so "it did not run" would say the wrong thing of them.
_WAIT_CANCELED = {
    "ask_user": "The turn was canceled before anybody answered.",
    "wait_until": "The turn was canceled before the wait was over.",
    "wait_for": "The turn was canceled before the wait was over.",
}


def canceled_words(tool: str) -> str:
    said = f"The turn was canceled before {tool} ran. It did not run."
    return _WAIT_CANCELED.get(tool, said)


def given_up(effect: str, tool: str, why: str, read_words: str) -> tuple[str, str]:
    """(outcome, words) of a call that nobody waits for any more after an attempt has begun."""
    if effect == "read":
        return "canceled", read_words
    return "outcome_unknown", unknown_words(tool, why)


def canceled_after(effect: str, tool: str) -> tuple[str, str]:
    """The same, when its turn was canceled."""
    words = f"The turn was canceled before {tool} gave a result. It may be called again."
    return given_up(effect, tool, "the turn was canceled after it had begun", words)


def unanswered_words(reason: str) -> str:
    return f"Nobody answered: {reason}" if reason else "Nobody answered before this was called off."


def waited_words(until: datetime) -> str:
    return f"Waited until {until.isoformat()}."


def skipped_words(by: str, waited: float) -> str:
    return f"{by} skipped the wait after {_seconds_words(waited)}."


def _seconds_words(seconds: float) -> str:
    """A span in its one or two largest units: 45 s, 5 min 2 s, 3 h 20 min, 4 d 2 h."""
    left, parts = round(seconds), []
    for size, name in ((86400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        if left >= size:
            parts.append(f"{left // size} {name}")
            left %= size
    return " ".join(parts[:2]) or "less than a second"


def phase_of(approvals: int, questions: int, acting: int, timers: int) -> str:
    """The phase while calls are open: what needs a person most comes first, a timer last."""
    if approvals:
        return "waiting_approval"
    if questions:
        return "waiting_answer"
    return "waiting_timer" if timers and not acting else "acting"


CALLED_OFF = "The session that gave it this task called it off."
_CHILD_ENDED = {
    "canceled": "was called off before it answered",
    "terminated": "was terminated before it answered",
    "timed_out": "reached its time limit before it answered",
    "failed": "did not finish the task",
}


def child_ended_words(agent: str, child: str, status: str, reason: str, unknown: bool) -> str:
    """Of a delegation that brought no answer. `unknown`: whether something that it did took effect."""
    ended = _CHILD_ENDED.get(status, _CHILD_ENDED["failed"])
    said = f"{agent} {ended}. The session {child} shows what it did until then."
    if reason:
        said = f"{said} The reason: {reason}"
    if unknown:
        said = (
            f"{said} Whether all that it did took effect is not known: it may have. It was not and "
            "will not be repeated by itself; check before you ask for it again."
        )
    return said


def session_ended_words(tool: str) -> str:
    return f"The session was ended before {tool} gave a result."


def too_many_words(tool: str, limit: int) -> str:
    return f"Only {limit} calls may run in parallel, so {tool} was left out. {DID_NOT_RUN}"


def step_type(call: ToolCallPlan) -> str:
    """A write gets one attempt, ever; a Step of its own type says so. A child session is begun once
    whatever happens, so a delegation needs none.
    """
    single = call.effect == "write" and call.tool != DELEGATE
    return "CallSingleAttemptTool" if single else "CallTool"


def backoff(attempt: int, base: float) -> float:
    """Seconds to wait after ``attempt`` (from 1) failed: doubling, at most a minute."""
    return min(base * 2.0 ** (attempt - 1), 60.0)


LONGEST_EXTENSION = 30 * 24 * 3600.0


def longest_wait(policy: ApprovalPolicy) -> float:
    """How many seconds from now a deadline may be moved to: 30 days, or what its policy waits itself."""
    reach = policy.deadline + sum(step.deadline for step in policy.escalation)
    return max(LONGEST_EXTENSION, reach)


def ask_again_after(asked: int) -> float:
    """Seconds until a spend limit that refused is asked again: 5 minutes at first, 6 hours at most."""
    return min(300.0 * 2.0 ** min(asked, 10), 6 * 3600.0)


def refuse(code: str, **details: object) -> ApplicationError:
    """An RPC's refusal as the engine carries it; `dexweb.engine.errors` makes it a typed error again."""
    return ApplicationError(code, details, type=code, non_retryable=True)


def check_size(text: str, limit: int) -> None:
    """Refuse a text of more than ``limit`` bytes."""
    size = len(text.encode())
    if size > limit:
        raise refuse("too_large", size=size, limit=limit)


def queue_has_room(queue: list[UserMessage], text: str, limit: int) -> bool:
    """Whether the state stays small enough to be handed to the next run; one message always fits."""
    waiting = sum(_size(message.text) for message in queue)
    return not queue or waiting + _size(text) <= limit


def _size(text: str) -> int:
    """As the engine keeps it, where some characters take six."""
    return len(json.dumps(text, ensure_ascii=False).encode())


LEDGER_SIZE = 1000


def remember(ledger: dict[str, RpcAnswer], request_id: str, answer: RpcAnswer) -> None:
    """Keep the newest answers; the engine itself forgets an update's id when a run ends."""
    ledger[request_id] = answer
    while len(ledger) > LEDGER_SIZE:
        del ledger[next(iter(ledger))]
