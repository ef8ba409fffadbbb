"""Addresses of the API. Each works with and without its last slash."""

from typing import Any

from django.urls import URLPattern, path, re_path

from approvals_app import api as approvals
from approvals_app import api_audit, api_batch, api_delegations, api_holds, api_questions
from sessions_app.api import definitions, reading, sessions, spend, workers
from sessions_app.api.views import UnknownAddress


def both(route: str, view: type[Any], name: str) -> list[URLPattern]:
    """``route`` as written, and with its last slash added or left out."""
    other = view.as_view()
    other.is_alternate = True
    turned = route[:-1] if route.endswith("/") else f"{route}/"
    return [path(route, view.as_view(), name=name), path(turned, other)]


_SESSION = "sessions/<slug:session_id>"
_APPROVAL = "approvals/<slug:interrupt_id>"

urlpatterns = [
    *both("sessions/", sessions.SessionList, "api-sessions"),
    *both(f"{_SESSION}/", sessions.SessionDetail, "api-session"),
    *both(f"{_SESSION}/steps", reading.StepList, "api-steps"),
    *both(f"{_SESSION}/steps/<name:step_id>", reading.StepDetail, "api-step"),
    *both(f"{_SESSION}/steps/<name:step_id>/skip", sessions.SkipWait, "api-skip-wait"),
    *both(f"{_SESSION}/events", reading.EventList, "api-events"),
    *both(f"{_SESSION}/messages", sessions.MessageList, "api-messages"),
    *both(f"{_SESSION}/queue", sessions.QueueList, "api-queue"),
    *both(f"{_SESSION}/queue/<name:message_id>", sessions.QueuedMessage, "api-queued"),
    *both(f"{_SESSION}/queue/<name:message_id>/steer", sessions.Steer, "api-steer"),
    *both(f"{_SESSION}/graph", reading.Graph, "api-graph"),
    *both(f"{_SESSION}/snapshot", reading.Snapshot, "api-snapshot"),
    *both(f"{_SESSION}/stop", sessions.Stop, "api-stop"),
    *both(f"{_SESSION}/raise-spend", sessions.RaiseSpend, "api-raise-spend"),
    *both(f"{_SESSION}/cancel-turn", sessions.CancelTurn, "api-cancel-turn"),
    *both(f"{_SESSION}/settings", sessions.SessionSettings, "api-settings"),
    *both("approvals/", approvals.ApprovalList, "api-approvals"),
    *both("approvals/batch", api_batch.DecideBatch, "api-batch"),
    *both(f"{_APPROVAL}/", approvals.ApprovalDetail, "api-approval"),
    *both(f"{_APPROVAL}/decide", approvals.Decide, "api-decide"),
    *both(f"{_APPROVAL}/answer", api_questions.Answer, "api-answer"),
    *both(f"{_APPROVAL}/hold", api_holds.Hold, "api-hold"),
    *both(f"{_APPROVAL}/release", api_holds.Release, "api-release"),
    *both(f"{_APPROVAL}/take-over", api_holds.TakeOver, "api-take-over"),
    *both(f"{_APPROVAL}/extend", api_holds.Extend, "api-extend"),
    *both(f"{_APPROVAL}/receipt", api_audit.ReceiptView, "api-receipt"),
    *both("audit/", api_audit.AuditList, "api-audit"),
    *both("delegations/", api_delegations.DelegationList, "api-delegations"),
    *both(
        "delegations/<int:delegation_id>/revoke",
        api_delegations.RevokeDelegation,
        "api-delegation-revoke",
    ),
    *both("workers", workers.WorkerList, "api-workers"),
    *both("agents/", definitions.AgentList, "api-agents"),
    *both("connections/", definitions.ConnectionList, "api-connections"),
    *both("spend", spend.Spend, "api-spend"),
    *both("credentials/", definitions.CredentialList, "api-credentials"),
    re_path(r"", UnknownAddress.as_view()),
]
