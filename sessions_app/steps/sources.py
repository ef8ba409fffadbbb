"""From rows to what a Step calls: the model with its key, the tools with their credentials."""

from typing import Any

from django.db.models import Exists, OuterRef, Prefetch, Q, prefetch_related_objects

from sessions_app.flow.terms import ApprovalPolicy, EscalationStep
from sessions_app.llm.factory import ModelSpec, ModelUnavailable
from sessions_app.models import Agent, Connection, Credential, ToolPolicy
from sessions_app.models.credentials import CredentialUnreadable
from sessions_app.session_settings import effective
from sessions_app.tools.durations import duration_seconds
from sessions_app.tools.mcp import ConnectionSpec, ConnectionUnusable


def agent_named(name: str) -> Agent:
    """An agent with its connections, and whether any tool of it is switched off, as ``some_off``.

    See `with_policies`.
    """
    off = ToolPolicy.objects.filter(
        Q(agent=OuterRef("pk")) | Q(connection__agent=OuterRef("pk")), enabled=False
    )
    return (
        Agent.objects.annotate(some_off=Exists(off))
        .select_related("credential")
        .defer("credential__value")
        .prefetch_related(
            Prefetch("connections__credential", queryset=Credential.objects.without_value())
        )
        .get(name=name)
    )


def with_policies(agent: Agent) -> Agent:
    """The same, with the policies of its tools read all at once."""
    prefetch_related_objects([agent], "tools", "connections__tools")
    return agent


def turn_settings(agent: Agent, changes: dict[str, Any]) -> dict[str, Any]:
    """What a turn keeps from its beginning, whatever is edited meanwhile. It holds no secret.

    ``changes`` are the session's own.
    """
    return {
        **effective(agent, changes),
        "credential": agent.credential.name if agent.credential else "",
        "agent_revision": agent.revision,
    }


def model_spec(settings: dict[str, Any], call_index: int, purpose: str = "") -> ModelSpec:
    """The model of a turn, for its answer or for another ``purpose``, which offline ones ask for.

    Raises `ModelUnavailable` when its credential is gone, disabled, or cannot be decrypted.
    """
    credential = _credential(settings["credential"])
    try:
        api_key = credential.secret() if credential else ""
    except CredentialUnreadable as error:
        raise ModelUnavailable(str(error)) from error
    return ModelSpec(
        name=settings["model"],
        api_key=api_key,
        base_url=credential.base_url if credential else "",
        settings={**settings["settings"], "model_call_index": call_index, "purpose": purpose},
    )


def _credential(name: str) -> Credential | None:
    if not name:
        return None
    credential = Credential.objects.without_value().filter(name=name, enabled=True).first()
    if credential is None:
        raise ModelUnavailable(
            f"The credential “{name}” is gone or disabled. Choose another in the admin site."
        )
    return credential


def approval_policy(agent: Agent, tool: str) -> ApprovalPolicy | None:
    """Who is asked before ``tool`` (full name) runs; None when nobody is."""
    policy = agent.policy_for(tool)
    if not policy.needs_approval:
        return None
    return ApprovalPolicy(
        permission=policy.permission,
        risk=policy.risk,
        deadline=policy.deadline.total_seconds(),
        at_deadline=policy.at_deadline,  # type: ignore[arg-type]
        approve_n=policy.approve_n,
        deny_m=policy.deny_m,
        four_eyes=policy.four_eyes,
        reason_on_approve=policy.reason_on_approve,
        reason_on_reject=policy.reason_on_reject,
        editable=policy.editable,
        validity=policy.validity.total_seconds() if policy.validity else 0,
        reminders=[duration_seconds(before) for before in policy.reminders],
        escalation=[
            EscalationStep(step["permission"], duration_seconds(step["deadline"]))
            for step in policy.escalation
        ],
        version=agent.revision,
        source=agent.source_of(tool),
    )


def connection_specs(agent: Agent) -> list[ConnectionSpec]:
    """The agent's enabled connections."""
    return [connection_spec(row) for row in agent.connections.all() if row.enabled]


def connection_spec(row: Connection) -> ConnectionSpec:
    """Raises `ConnectionUnusable` when its credential is disabled or cannot be decrypted."""
    if row.credential and not row.credential.enabled:
        raise ConnectionUnusable(f"The credential of the connection {row.name} is disabled.")
    try:
        secret = row.credential.secret() if row.credential else ""
    except CredentialUnreadable as error:
        raise ConnectionUnusable(f"The connection {row.name} cannot be used. {error}") from error
    return ConnectionSpec(
        name=row.name,
        transport=row.transport,  # type: ignore[arg-type]
        command=tuple(row.command),
        env=row.env,
        url=row.url,
        headers=row.headers,
        secret=secret,
    )


def connection_of(agent: Agent, tool: str) -> ConnectionSpec | None:
    """The enabled connection that ``tool`` (full name) comes from, or None."""
    row = agent.connection_of(tool)
    return connection_spec(row) if row else None
