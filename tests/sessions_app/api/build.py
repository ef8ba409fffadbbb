"""Rows and people for tests of the API and the admin, in words."""

from datetime import UTC, datetime, timedelta
from typing import Any

from django.contrib.auth.models import Group, Permission, User
from django.utils import timezone
from rest_framework.test import APIClient

from approvals_app.models import Interrupt, PermissionKey
from sessions_app import arguments
from sessions_app.models import Agent, AgentEvent, Message, Session, Step, ToolCall

LOOK = ("view_session", "view_interrupt")
OPERATE = (*LOOK, "operate_session")
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def person(name: str, *permissions: str, keys: tuple[str, ...] = ()) -> User:
    """Somebody who holds these model permissions and permission keys."""
    user = User.objects.create_user(name)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    if keys:
        group = Group.objects.create(name=f"{name}'s")
        user.groups.add(group)
        for key in keys:
            PermissionKey.objects.get_or_create(key=key)[0].groups.add(group)
    return user


def client_of(user: User | None) -> APIClient:
    client = APIClient()
    if user is not None:
        client.force_authenticate(user)
    return client


def agent(name: str = "refund-desk", **fields: Any) -> Agent:
    return Agent.objects.get_or_create(name=name, defaults={"model": "demo:refund-desk", **fields})[
        0
    ]


def session(pk: str = "refund-desk-1", **fields: Any) -> Session:
    defaults = {"title": "A refund", "created_at": NOON, "updated_at": NOON, "agent": agent()}
    return Session.objects.create(pk=pk, **{**defaults, **fields})


def step(of: Session, step_id: str, position: int, **fields: Any) -> Step:
    defaults = {"type": step_id.partition("-")[0], "status": "completed", "turn": 1}
    return Step.objects.create(
        session=of, step_id=step_id, position=position, **{**defaults, **fields}
    )


def events(of: Session, count: int) -> None:
    start = of.last_seq
    AgentEvent.objects.bulk_create(
        AgentEvent(session=of, seq=start + n, type="step.changed", payload={"n": n}, at=NOON)
        for n in range(1, count + 1)
    )
    of.last_seq += count
    of.save()


def message(of: Session, text: str, **fields: Any) -> Message:
    defaults = {"message_id": f"m-{text}", "created_at": NOON, "author_name": "ann"}
    return Message.objects.create(session=of, text=text, **{**defaults, **fields})


def call(of: Session, call_id: str, args: str, **fields: Any) -> ToolCall:
    defaults = {
        "model_step": "RunModel-1",
        "turn": 1,
        "position": 0,
        "tool": "shop__issue_refund",
        "effect": "write",
        "args_hash": "0" * 64,
        "requested_at": NOON,
    }
    return ToolCall.objects.create(session=of, call_id=call_id, args=args, **{**defaults, **fields})


def interrupt(
    of: Session, pk: str = "i-1", args: str = '{"amount": 12.50}', **fields: Any
) -> Interrupt:
    """A pending approval with ten minutes left."""
    defaults = {
        "step_id": f"AwaitToolApproval-{pk}",
        "call_id": f"call-{pk}",
        "turn": 1,
        "tool": "shop__issue_refund",
        "effect": "write",
        "risk": "high",
        "permission": "refunds.approve",
        "args_hash": arguments.hash_of(arguments.parse(args)),
        "deadline": timezone.now() + timedelta(minutes=10),
        "at_deadline": "reject",
        "asked_at": NOON,
    }
    return Interrupt.objects.create(pk=pk, session=of, args=args, **{**defaults, **fields})
