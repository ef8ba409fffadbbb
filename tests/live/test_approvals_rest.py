"""Holds, deadlines, edits, receipts and the audit log over REST, on the real engine."""

import threading
import uuid
from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connections
from django.test import Client
from django.utils import timezone
from rest_framework.authtoken.models import Token
from rest_framework.test import APIClient

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
    assert (refused.status_code, body["code"], body["kind"]) == (
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
    for more, code in ((-1, "deadline_not_later"), (31 * 24, "deadline_too_far")):
        beyond = (until + timedelta(hours=more)).isoformat()
        refused = his.post(f"{address}/extend", {"until": beyond})
        assert (refused.status_code, refused.json()["code"]) == (400, code)
        page = Client()
        page.force_login(bob)
        form = {"moment": beyond, "request_id": str(uuid.uuid4())}
        refused = page.post(f"/approvals/{held.json()['id']}/extend/", form)
        assert (refused.status_code, f'data-code="{code}"' in refused.content.decode()) == (
            400,
            True,
        )
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


def test_people_and_tokens_at_once_make_one_outcome_and_each_is_told_who(live: Live) -> None:
    live.agent(SCRIPT, pool="standing")
    people = [live.person(name, "refunds.approve") for name in ("ann", "bob", "cy")]
    interrupt = live.ask(live.start(people[0]))
    named = {"revision": interrupt.revision, "args_hash": interrupt.args_hash}
    barrier = threading.Barrier(2 * len(people))
    told: list[tuple[str, int, str]] = []

    def press(person: User, token: str) -> None:
        verdict = {**named, "verdict": "approve" if token else "reject", "reason": "Late."}
        barrier.wait()
        try:
            if token:
                client = APIClient(headers={"Authorization": f"Token {token}"})
                answer = client.post(f"{BASE}/{interrupt.pk}/decide", verdict, format="json")
                body = answer.json()
                who = body.get("by") or body.get("decided_by") or ""
            else:
                page = Client()
                page.force_login(person)
                verdict["request_id"] = str(uuid.uuid4())
                answer = page.post(f"/approvals/{interrupt.pk}/decide/", verdict)
                who = ""
            told.append((verdict["verdict"], answer.status_code, who))
        finally:
            connections.close_all()

    threads = [
        threading.Thread(target=press, args=(person, token))
        for person in people
        for token in ("", Token.objects.create(user=person).key)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    live.idle(interrupt.session)

    interrupt.refresh_from_db()
    won = {"approved": "approve", "rejected": "reject"}[interrupt.state]
    taken = {"approve": 200, "reject": 302}
    assert [verdict for verdict, status, _ in told if status < 400] == [won]
    assert sorted(status for _, status, _ in told) == sorted([taken[won], *[409] * 5])
    assert {who for _, status, who in told if who} <= {interrupt.decided_by_name}
    entries = AuditEntry.objects.filter(action__in=["decision.approve", "decision.reject"])
    assert [entry.actor_name for entry in entries] == [interrupt.decided_by_name]
    assert len(live.ledger("refunds")) == (won == "approve")
    ends = interrupt.session.events.filter(type="approval.decided")
    assert ends.count() == 1
