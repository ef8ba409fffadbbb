"""The two ends of a delegation: a child session is made, and its answer becomes the call's outcome."""

import hashlib
from dataclasses import asdict
from typing import Any

from channels.db import database_sync_to_async as in_database
from temporalio import activity

from approvals_app.rules import writers
from sessions_app import arguments
from sessions_app.flow import rules
from sessions_app.flow.state import (
    BEGIN_DELEGATION,
    END_DELEGATION,
    CallToolInput,
    DelegationBegun,
    EndDelegationInput,
    Limits,
    SessionInput,
    ToolCallResult,
)
from sessions_app.flow.terms import DELEGATE, Actor, UserMessage
from sessions_app.models import Agent, Session, ToolCall
from sessions_app.projection import recording
from sessions_app.reconcile import CLOSED_AS, close
from sessions_app.step_times import limits_for
from sessions_app.steps import reports, sources
from sessions_app.steps.call_tool import ended, for_model, mark_begun, may_not_run, refuse
from sessions_app.steps.heartbeat import heartbeats
from sessions_app.text import keepable, title_of

ID_LENGTH = 100
NAME_LENGTH = 150


@activity.defn(name=BEGIN_DELEGATION)
async def begin_delegation(given: CallToolInput) -> DelegationBegun:
    """The child that the Flow is to start, or how the call ended instead. The same one when repeated."""
    async with heartbeats():
        return await in_database(begin)(given)


@activity.defn(name=END_DELEGATION)
async def end_delegation(given: EndDelegationInput) -> ToolCallResult:
    """The child's Flow has ended: what its rows say is the outcome of the call."""
    async with heartbeats():
        return await in_database(end)(given)


def begin(given: CallToolInput) -> DelegationBegun:
    with recording(given.step.session_id, given.step.facts) as session:
        call = session.calls.select_for_update().get(call_id=given.call.call_id)
        step = reports.step_of(session, given.step)
        if call.outcome:
            return DelegationBegun(None, ToolCallResult(call.outcome, call.words))
        if call.child is None:
            agent = sources.with_policies(sources.agent_named(given.agent))
            refused = may_not_run(given, session, step, call, agent)
            if refused is not None:
                return DelegationBegun(None, refused)
            args = arguments.parse(call.args)
            why = refusal(session, agent, args["agent"])
            if why:
                return DelegationBegun(None, refuse(session, step, call, why))
            call.child = make_child(session, call, args)
            mark_begun(session, step, call, given.step, child=call.child.pk)
        # One that was stopped before it began is not started any more.
        return DelegationBegun(_input_of(session, call) if call.child.open else None)


def refusal(session: Session, agent: Agent, name: str) -> str:
    """Why this session may not delegate to the agent called ``name``, in a sentence; "" when it may."""
    if name not in agent.delegates:
        return f"{agent.name} may not delegate to {name}."
    if not Agent.objects.enabled().filter(name=name).exists():
        return f"The agent {name} is disabled or gone."
    limits = Limits()
    if depth_of(session) >= limits.delegation_depth:
        return (
            f"Sub-agents work at most {limits.delegation_depth} levels deep, and this is the last. "
            "Do the task without delegating it."
        )
    begun = session.calls.filter(tool=DELEGATE, begun_attempt__gt=0)
    if begun.count() >= limits.children:
        return f"This session has begun {limits.children} sub-agents, as many as it may."
    if begun.filter(outcome="").count() >= limits.children_at_once:
        return (
            f"{limits.children_at_once} sub-agents of this session are at work, as many as may be "
            "at once. Delegate when one of them has answered."
        )
    return ""


def depth_of(session: Session) -> int:
    """How many sessions are above this one, as far as it matters."""
    depth, parent = 0, session.parent
    while parent is not None and depth < Limits().delegation_depth:
        depth, parent = depth + 1, parent.parent
    return depth


def make_child(session: Session, call: ToolCall, args: dict[str, Any]) -> Session:
    """The child's row, so that it is linked and counted before its Flow begins."""
    agent = Agent.objects.get(name=args["agent"])
    number = session.calls.filter(tool=DELEGATE, begun_attempt__gt=0).count() + 1
    at = call.requested_at
    child = Session.objects.create(
        pk=child_id(session.pk, agent.name, number),
        agent=agent,
        limits=asdict(limits_for(agent)),
        title=title_of(args["task"]),
        labels=session.labels,
        started_by=session.started_by,
        parent=session,
        created_at=at,
        updated_at=at,
    )
    behind = writers([(session.pk, call.turn)])[session.pk, call.turn]
    child.behind.set(person for person in behind if person is not None)
    return child


def child_id(parent: str, agent: str, number: int) -> str:
    """Stable and readable: who began it, who works in it, which one it is."""
    whole = f"{parent}-{agent}-{number}"
    if len(whole) <= ID_LENGTH:
        return whole
    # A parent's own id ends with what tells it from others, so its beginning is given up.
    digest = hashlib.sha256(whole.encode()).hexdigest()[:12]
    return f"{agent}-{digest}-{number}"


def _input_of(session: Session, call: ToolCall) -> SessionInput:
    child = call.child
    assert child is not None
    starter = session.started_by
    author, at = _author(session, call), call.requested_at.isoformat()
    return SessionInput(
        session_id=child.pk,
        agent=child.agent.name,
        title=child.title,
        pool=child.agent.pool,
        started_by=Actor(starter.pk, starter.get_username()) if starter else Actor(0, ""),
        first_message=UserMessage("task", keepable(arguments.parse(call.args)["task"]), author, at),
        labels=child.labels,
        limits=limits_for(child.agent),
        parent=session.pk,
    )


def _author(session: Session, call: ToolCall) -> Actor:
    """The agent, with the person behind it: who wrote what this turn was told."""
    agent = session.agent.name
    opened = session.messages.filter(turn=call.turn, before_step="").select_related("author")
    message = opened.first()
    unknown = None in writers([(session.pk, call.turn)])[session.pk, call.turn]
    if message is None or message.author is None or unknown:
        return Actor(0, agent)
    name = f"{agent}, for {message.author.get_username()}"
    return Actor(message.author.pk, name[:NAME_LENGTH])


def end(given: EndDelegationInput) -> ToolCallResult:
    calls = ToolCall.objects.filter(session=given.step.session_id, call_id=given.call_id)
    child = calls.values_list("child", flat=True).get()
    if child is not None:
        # Most have told so themselves. One that was ended by force, or that never began, could not.
        close(child, *CLOSED_AS.get(given.ended, (Session.Status.CANCELED, rules.CALLED_OFF)))
    with recording(given.step.session_id, given.step.facts) as session:
        call = session.calls.select_related("child__agent").get(call_id=given.call_id)
        if call.outcome:
            return ToolCallResult(call.outcome, call.words)
        result, whole = outcome_of(call)
        if call.child is not None:
            led_by(session, call, call.child)
        return ended(session, reports.step_of(session, given.step), call, result, whole)


def led_by(session: Session, call: ToolCall, child: Session) -> None:
    """Whoever had a say in the child has one in what the session does with its answer."""
    own = (session.pk, call.turn)
    turns = [(child.pk, number) for number in child.turns.values_list("number", flat=True)]
    people = set().union(*writers(turns).values()) - writers([own])[own]
    session.behind.add(*(person for person in people if person is not None))


def outcome_of(call: ToolCall) -> tuple[ToolCallResult, str]:
    """(how a delegation ended, the child's answer), by the rows of its child, which is closed."""
    child = call.child
    if child is None:
        return ToolCallResult("canceled", rules.canceled_words(call.tool), ran=False), ""
    turn = child.turns.order_by("-number").first()
    if child.status == Session.Status.COMPLETED and turn and turn.state == "completed":
        said = child.steps.filter(type="RunModel", turn=turn.number).order_by("-position").first()
        answer = (said.text if said else "") or f"{child.agent.name} answered without words."
        words, cut = for_model(answer)
        return ToolCallResult("completed", words if cut else ""), answer
    status = child.status if child.status != Session.Status.COMPLETED else Session.Status.FAILED
    reason = child.close_reason or (turn.detail if turn else "")
    by_force = status in (Session.Status.TERMINATED, Session.Status.TIMED_OUT)
    acted = child.calls.exclude(effect="read").filter(begun_attempt__gt=0).exists()
    unknown = bool(child.unknown_outcomes) or (by_force and acted)
    words = rules.child_ended_words(child.agent.name, child.pk, status, reason, unknown)
    if unknown:
        return ToolCallResult("outcome_unknown", words), ""
    return ToolCallResult("canceled" if status == Session.Status.CANCELED else "failed", words), ""
