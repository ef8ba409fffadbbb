"""Each rule about deciding, tried through every way in: the same refusal, and nothing is decided."""

import uuid
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from approvals_app.models import AuditEntry, Decision, Delegation, Interrupt
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
    superuser: bool = False
    #: Who started the session and wrote to it last; and who has lent ann their permission.
    asked_by: str = ""
    lent_by: str = ""


FOUR_EYES = {"policy": {"four_eyes": True}}
DECIDED = {"decided_by_name": "bob", "decided_at": timezone.now()}
CASES = [
    Case("without the permission key", 403, "not_allowed", keys=("mails.approve",)),
    Case("after an escalation to others", 403, "not_allowed", {"permission": "refunds.lead"}),
    Case("under four eyes, who asked unknown", 403, "four_eyes", FOUR_EYES),
    Case("under four eyes, asked themselves", 403, "four_eyes", FOUR_EYES, asked_by="ann"),
    Case(
        "under four eyes, a superuser who asked",
        403,
        "four_eyes",
        FOUR_EYES,
        asked_by="ann",
        superuser=True,
    ),
    Case(
        "under four eyes, for the one who asked",
        403,
        "four_eyes",
        FOUR_EYES,
        asked_by="bob",
        lent_by="bob",
        keys=(),
    ),
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
    if "results" not in answer.context:
        return answer.status_code
    [result] = answer.context["results"]
    assert result.outcome == "refused"
    assert result.error is not None
    return result.error.status


def by_admin(person: Any, row: Interrupt, sent: dict[str, Any]) -> int:
    """The admin site leads to the batch page, and what is decided is decided there."""
    person.is_staff = True
    person.save()
    client = Client()
    client.force_login(person)
    chosen = {"action": "decide_together", "_selected_action": [row.pk]}
    answer = client.post("/admin/approvals_app/interrupt/", chosen)
    assert answer.url == f"/approvals/batch/?id={row.pk}"
    assert row.pk in client.get(answer.url).content.decode()
    return by_batch(person, row, sent)


every_way = pytest.mark.parametrize(
    "way", [by_page, by_api, by_batch, by_admin], ids=lambda way: way.__name__
)


def the_person_and_the_approval(case: Case) -> tuple[Any, Interrupt]:
    ann = build.person("ann", *build.LOOK, keys=case.keys)
    ann.is_superuser = case.superuser
    ann.save()
    people = {"ann": ann, "": None}
    for name in {case.asked_by, case.lent_by} - {"ann", ""}:
        people[name] = build.person(name, *build.LOOK, keys=(KEY,))
    if case.lent_by:
        Delegation.objects.create(
            giver=people[case.lent_by],
            receiver=ann,
            key=KEY,
            reason="Away",
            starts_at=timezone.now(),
            ends_at=timezone.now() + timedelta(hours=1),
        )
    asker = people[case.asked_by]
    session = build.session(started_by=asker)
    if asker:
        build.message(session, "A refund, please", author=asker, turn=1)
    return ann, build.interrupt(session, **case.row)


@every_way
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_rule_holds_on_every_way_in_and_its_refusal_is_audited(case: Case, way: Any) -> None:
    ann, row = the_person_and_the_approval(case)
    before = row.state
    for verdict in ("approve", "reject"):
        sent = {
            "verdict": verdict,
            "reason": "Because.",
            "revision": row.revision,
            "args_hash": row.args_hash,
            **case.sent,
        }
        assert way(ann, row, sent) == case.status
        entry = AuditEntry.objects.get(action="decision.refused", detail__verdict=verdict)
        assert (entry.actor, entry.detail["code"]) == (ann, case.code)
        row.refresh_from_db()
        assert row.state == before
    assert not Decision.objects.exists()


@every_way
def test_a_rejection_without_its_reason_is_refused_on_every_way_in(way: Any) -> None:
    ann = build.person("ann", *build.LOOK, keys=(KEY,))
    row = build.interrupt(build.session())
    sent = {"verdict": "reject", "reason": " ", "revision": 1, "args_hash": row.args_hash}
    assert way(ann, row, sent) == 400
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
