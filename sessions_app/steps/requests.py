"""The calls that a model's answer asks for: judged, and recorded with what they are to run under."""

import json
from dataclasses import asdict
from typing import Any

from django.conf import settings
from django.utils import timezone
from pydantic import TypeAdapter

from sessions_app import arguments
from sessions_app.flow import rules
from sessions_app.flow.state import StepContext, ToolCallPlan
from sessions_app.llm.stream import ModelReply, RequestedCall
from sessions_app.models import Agent, Session, ToolCall
from sessions_app.step_times import tool_times
from sessions_app.steps import sources
from sessions_app.stream.append import append
from sessions_app.text import keepable
from sessions_app.tools import builtin
from sessions_app.tools.mcp import ToolDef, validate_args

#: A larger schema is not kept beside the call.
SCHEMA_BYTES = 64 * 1024
PLAN = TypeAdapter(ToolCallPlan)

#: (arguments or None, what is wrong with the call or "").
Judged = tuple[dict[str, Any] | None, str]


def judge_all(reply: ModelReply, tools: list[ToolDef], most: int) -> list[Judged]:
    """Each call's arguments and faults; what is one too many to run is not looked at closely."""
    by_name = {tool.name: tool for tool in tools}
    return [
        _judged(call, by_name.get(call.tool))
        if place < most
        else (None, rules.too_many_words(call.tool, most))
        for place, call in enumerate(reply.calls)
    ]


def _judged(call: RequestedCall, tool: ToolDef | None) -> Judged:
    most = settings.DEXWEB_LIMIT_ARGUMENTS
    if len(call.args_json.encode()) > most:
        size = f"The arguments are larger than {most // 1024} KiB."
        return None, rules.invalid_words(size)
    try:
        args = arguments.parse(call.args_json)
        arguments.hash_of(args)
    except ValueError as error:
        return None, rules.invalid_words(str(error))
    except RecursionError:
        return None, rules.invalid_words("The arguments are nested too deeply.")
    if tool is None:
        return args, rules.invalid_words(f"There is no tool {call.tool}.")
    misfit = rules.invalid_words("The arguments do not fit the tool.")
    errors = validate_args(tool.schema, args)
    if errors:
        return args, f"{misfit} {'; '.join(errors)}"
    try:
        builtin.waits(tool.name, args, timezone.now())
    except ValueError as error:
        return args, f"{misfit} {error}"
    return args, ""


def record_request(
    session: Session,
    context: StepContext,
    position: int,
    call: RequestedCall,
    agent: Agent,
    tool: ToolDef | None,
    judged: Judged,
) -> ToolCallPlan:
    """The row and the plan of one call that the model asks for."""
    args, error = judged
    now = timezone.now()
    policy = agent.policy_for(call.tool)
    waits = call.tool in builtin.TOOLS
    given = call.args_json[: settings.DEXWEB_LIMIT_ARGUMENTS]
    text = arguments.as_text(args) if args is not None else keepable(given)
    plan = ToolCallPlan(
        call_id=keepable(call.call_id)[:160],
        tool=keepable(call.tool)[:200],
        # A built-in tool that waits does nothing to the world, whatever a pattern like * says.
        effect="read" if waits else policy.effect,  # type: ignore[arg-type]
        args_hash=arguments.hash_of(args) if args is not None else "",
        error=error,
        approval=None if error or waits else sources.approval_policy(agent, call.tool),
        pool=policy.pool,
        **tool_times(policy),
        **({} if error or args is None else builtin.waits(call.tool, args, now)),
    )
    ToolCall.objects.create(
        session=session,
        call_id=plan.call_id,
        model_step=context.step_id,
        turn=context.turn,
        position=position,
        tool=plan.tool,
        effect=plan.effect,
        args=text,
        args_hash=plan.args_hash,
        policy=asdict(plan),
        schema=_kept_schema(tool),
        requested_at=now,
    )
    append(
        session,
        "tool.requested",
        {
            "call_id": plan.call_id,
            "tool": plan.tool,
            "effect": plan.effect,
            "args_hash": plan.args_hash,
            "needs_approval": plan.approval is not None,
        },
        now,
        context.step_id,
    )
    return plan


def _kept_schema(tool: ToolDef | None) -> dict[str, Any]:
    """The schema that edited arguments are checked against; one that is huge is not kept."""
    schema = dict(tool.schema) if tool else {}
    return schema if len(json.dumps(schema)) <= SCHEMA_BYTES else {}


def plan_of(call: ToolCall) -> ToolCallPlan:
    return PLAN.validate_python(call.policy)
