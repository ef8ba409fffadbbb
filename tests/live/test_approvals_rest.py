"""Holds, deadlines, edits, receipts and the audit log over REST, on the real engine."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission
from django.utils import timezone

from approvals_app.models import AuditEntry
from sessions_app.models import ToolPolicy
from tests.live.conftest import Live
from tests.sessions_app.api import build

pytestmark = pytest.mark.usefixtures("standing_worker")
BASE = "/api/v1/approvals"
REFUND = {"order_id": "A-1042", "amount": 20, "currency": "EUR", "reason": "late"}
SCRIPT = [{"calls": [{"tool": "shop__issue_refund", "args": REFUND}]}, {"text": "Done."}]


def test_an_approval_is_held_taken_over_edited_run_and_accounted_for(live: Live) -> None:
    live.agent(SCRIPT, pool="standing")
    ToolPolicy.objects.filter(pattern="shop__issue_refund").update(editable=True)
    ann, bob = (live.person(name, "refunds.approve") for name in ("ann", "bob"))
    bob.user_permissions.set(Permission.objects.filter(codename="view_auditentry"))
    hers, his = build.client_of(ann), build.client_of(bob)
    session = live.start(ann)
    address = f"{BASE}/{live.ask(session).pk}"

    held = hers.post(f"{address}/hold", {"seconds": 60})
    assert (held.status_code, held.json()["lock"]["holder"]) == (200, "ann")
    refused = his.post(f"{address}/hold", {})
    body = refused.json()
    assert (refused.status_code, body["code"], body["lock_kind"]) == (
        409,
        "rpc_lock_conflict",
        "hold",
    )
    assert (body["holder"], body["retryable"]) == ("ann", False)
    assert body["interrupt"]["lock"]["holder"] == "ann"
    taken = his.post(f"{address}/take-over", {})
    assert taken.json()["lock"]["holder"] == "bob"

    until = timezone.now() + timedelta(hours=3)
    moved = his.post(f"{address}/extend", {"until": until.isoformat()})
    assert moved.json()["deadline"] == until.isoformat().replace("+00:00", "Z")
    assert his.post(f"{address}/release", {}).json()["lock"] is None

    shown = his.get(f"{address}/").json()
    named = {"revision": shown["revision"], "args_hash": shown["args_hash"]}
    decided = his.post(
        f"{address}/decide", {"verdict": "approve", **named, "args": {**REFUND, "amount": 12.5}}
    )
    assert (decided.status_code, decided.json()["state"]) == (200, "approved")
    assert decided.json()["edited_by"] == "bob"
    live.idle(session)
    receipt = his.get(f"{address}/receipt").json()
    assert (receipt["decided"]["by"], receipt["ran"]["outcome"]) == ("bob", "completed")
    assert receipt["equal"] is True
    assert receipt["decided"]["args_hash"] != shown["args_hash"]

    log = his.get(f"/api/v1/audit/?session={session.pk}").json()["results"]
    assert [(entry["actor"], entry["action"]) for entry in reversed(log)] == [
        ("ann", "session.started"),
        ("ann", "hold.taken"),
        ("bob", "hold.taken_over"),
        ("bob", "deadline.extended"),
        ("bob", "hold.released"),
        ("bob", "decision.approve"),
    ]
    assert AuditEntry.objects.filter(action="decision.approve").count() == 1
