"""Rows of sessions: definitions that people edit, and the projection of what the Flow did."""

from sessions_app.models.agents import Agent, ToolPolicy
from sessions_app.models.connectors import Connection
from sessions_app.models.credentials import Credential
from sessions_app.models.idempotency import IdempotencyKey
from sessions_app.models.sessions import AgentEvent, Message, Session, Step, ToolCall, Turn
from sessions_app.models.spend import (
    ModelPrice,
    SpendBudget,
    SpendDay,
    SpendReservation,
    UnpricedModel,
)
from sessions_app.models.summaries import ContextSummary
from sessions_app.models.workers import WorkerPresence

__all__ = [
    "Agent",
    "AgentEvent",
    "Connection",
    "ContextSummary",
    "Credential",
    "IdempotencyKey",
    "Message",
    "ModelPrice",
    "Session",
    "SpendBudget",
    "SpendDay",
    "SpendReservation",
    "Step",
    "ToolCall",
    "ToolPolicy",
    "Turn",
    "UnpricedModel",
    "WorkerPresence",
]
