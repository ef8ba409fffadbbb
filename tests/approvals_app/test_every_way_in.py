"""Each rule about deciding, tried through every way in: the same refusal, and nothing is decided."""

import uuid
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from approvals_app.models import AuditEntry, Decision, Interrupt
from tests.sessions_app.api import build

pytestmark = pytest.mark.django_db
KEY = "refunds.approve"


@dataclass(frozen=True)
class Case:
    """``row`` are fields of the approval, ``sent`` what differs in the decision."""

    name: str
    status: int
    code: str
    row: dict[str, Any] = field(default_factory=dict)
    sent: dict[str, Any] = field(default_factory=dict)
    keys: tuple[str, ...] = (KEY,)


DECIDED = {"decided_by_name": "bob", "decided_at": timezone.now()}
CASES = [
    Case("without the permission key", 403, "not_allowed", keys=("mails.approve",)),
    Case("after an escalation to others", 403, "not_allowed", {"permission": "refunds.lead"}),
    Case("under four eyes, who asked unknown", 403, "four_eyes", {"policy": {"four_eyes": True}}),
    Case("already approved", 409, "interrupt_already_decided", {"state": "approved", **DECIDED}),
    Case("already rejected", 409, "interrupt_already_decided", {"state": "rejected", **DECIDED}),
    Case("canceled", 409, "interrupt_already_decided", {"state": "canceled", **DECIDED}),
    Case("invalidated", 409, "interrupt_already_decided", {"state": "invalidated", **DECIDED}),
    Case("expired", 409, "interrupt_expired", {"state": "expired", **DECIDED}),
    Case("another revision", 409, "stale_interrupt", sent={"revision": 2}),
    Case("other arguments", 409, "stale_interrupt", sent={"args_hash": "0" * 64}),
]


def by_page(person: Any, row: Interrupt, sent: dict[str, Any]) -> int:
    client = Client()
    client.force_login(person)
    body = {**sent, "request_id": str(uuid.uuid4())}
    return client.post(f"/approvals/{row.pk}/decide/", body).status_code


def by_api(person: Any, row: Interrupt, sent: dict[str, Any]) -> int:
    answer = build.client_of(person).post(
        f"/api/v1/approvals/{row.pk}/decide/",
        sent,
        format="json",
        HTTP_IDEMPOTENCY_KEY=str(uuid.uuid4()),
    )
    return int(answer.status_code)


def by_batch(person: Any, row: Interrupt, sent: dict[str, Any]) -> int:
    """A batch answers for all of its items: what counts is the result of this one."""
    client = Client()
    client.force_login(person)
    body = {
        "verdict": sent["verdict"],
        "reason": sent["reason"],
        "batch_id": str(uuid.uuid4()),
        "item": [f"{row.pk}:{sent['revision']}:{sent['args_hash']}"],
    }
    answer = client.post("/approvals/batch/", body)
    [result] = answer.context["results"]
    assert result.outcome == "refused"
    assert result.error is not None
    return result.error.status


@pytest.mark.parametrize("way", [by_page, by_api, by_batch], ids=lambda way: way.__name__)
@pytest.mark.parametrize("verdict", ["approve", "reject"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_rule_holds_on_every_way_in_and_its_refusal_is_audited(
    case: Case, verdict: str, way: Any
) -> None:
    ann = build.person("ann", *build.LOOK, keys=case.keys)
    row = build.interrupt(build.session(), **case.row)
    sent = {
        "verdict": verdict,
        "reason": "Because.",
        "revision": row.revision,
        "args_hash": row.args_hash,
        **case.sent,
    }
    assert way(ann, row, sent) == case.status
    entry = AuditEntry.objects.get(action="decision.refused")
    assert (entry.actor, entry.detail["code"]) == (ann, case.code)
    before = row.state
    row.refresh_from_db()
    assert row.state == before
    assert not Decision.objects.exists()


@pytest.mark.parametrize(
    "path", ["decide/", "hold/", "release/", "take-over/", "extend/", "panel/", "arguments/", ""]
)
def test_looking_never_decides(path: str) -> None:
    ann = build.person("ann", *build.LOOK, keys=(KEY,))
    row = build.interrupt(build.session())
    client = Client()
    client.force_login(ann)
    named = f"?verdict=approve&revision=1&args_hash={row.args_hash}&request_id={uuid.uuid4()}"
    assert client.get(f"/approvals/{row.pk}/{path}{named}").status_code in (200, 302)
    row.refresh_from_db()
    assert (row.state, row.hold_by) == ("pending", None)
    assert not Decision.objects.exists()
