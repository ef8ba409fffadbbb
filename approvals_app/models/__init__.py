"""Rows of approvals: waits for a person, decisions, who may make them, and the audit log."""

from approvals_app.models.audit import AuditEntry, AuditHead
from approvals_app.models.decisions import Decision
from approvals_app.models.interrupts import Interrupt, InterruptQuerySet, Vote
from approvals_app.models.notifications import (
    Notification,
    NotificationChannel,
    NotificationDelivery,
    NotificationEvent,
    NotificationPreference,
)
from approvals_app.models.people import Delegation, PermissionKey, Principal

__all__ = [
    "AuditEntry",
    "AuditHead",
    "Decision",
    "Delegation",
    "Interrupt",
    "InterruptQuerySet",
    "Notification",
    "NotificationChannel",
    "NotificationDelivery",
    "NotificationEvent",
    "NotificationPreference",
    "PermissionKey",
    "Principal",
    "Vote",
]
