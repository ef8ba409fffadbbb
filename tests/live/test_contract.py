"""What others build on: the names of events and what each carries, as the real engine makes them."""

import pytest
from rest_framework.test import APIClient

from tests.live.conftest import Live, until

pytestmark = pytest.mark.usefixtures("standing_worker")

REFUND = {"order_id": "A-1042", "amount": 20, "currency": "EUR", "reason": "late"}
ISSUE = {"tool": "shop__issue_refund", "args": REFUND}
LOOKUP = {"tool": "shop__lookup_order", "args": {"order_id": "A-1042"}}
UNKNOWN = {"tool": "shop__lookup_order", "args": {"order_id": "Z-1"}}

NAMES = {
    "session": "started closed continued compacted",
    "turn": "started completed canceled",
    "message": "queued edited deleted steered consumed",
    "model": "started delta reasoning completed failed",
    "tool": "requested started progress completed failed outcome_unknown rejected expired "
    "invalidated",
    "approval": "requested held released reminded escalated voted decided expired canceled",
    "question": "asked answered",
    "timer": "set fired",
    "spend": "blocked raised",
    "step": "changed",
    "settings": "changed",
}
TYPES = {f"{family}.{name}" for family, names in NAMES.items() for name in names.split()}
# What every event of a family carries at the least.
KEYS = {
    "turn": {"turn", "session"},
    "message": {"message_id"},
    "tool": {"call_id", "tool"},
    "approval": {"interrupt_id", "call_id", "session"},
    "step": {"step_id", "type", "status", "outcome", "attempt", "turn", "session"},
}
ENDS = {"completed", "failed", "outcome_unknown", "rejected", "expired"}


def test_events_have_the_names_and_members_that_are_promised(live: Live) -> None:
    script = [{"text": "Let me see.", "calls": [LOOKUP, UNKNOWN, ISSUE, ISSUE]}, {"text": "Done."}]
    live.agent(script, pool="standing")
    boss = live.person("boss", "refunds.approve")
    session = live.start(boss)
    until(lambda: session.interrupts.pending().count() == 2, "two approvals")
    first, second = session.interrupts.pending().order_by("step_id")
    live.decide(boss, first)
    live.decide(boss, second, "reject", "Once is enough.")
    live.idle(session)

    client = APIClient()
    client.force_authenticate(boss)
    page = client.get(f"/api/v1/sessions/{session.pk}/events").json()
    events = page["results"]
    seen = {event["type"] for event in events}
    assert seen <= TYPES
    for type in (
        "session.started",
        "message.queued",
        "message.consumed",
        "turn.started",
        "model.started",
        "model.completed",
        "tool.requested",
        "approval.requested",
        "approval.decided",
        "tool.started",
        "tool.completed",
        "tool.failed",
        "tool.rejected",
        "turn.completed",
        "step.changed",
    ):
        assert type in seen
    for event in events:
        assert set(event) == {"seq", "type", "step_id", "attempt", "payload", "at"}
        assert KEYS.get(event["type"].partition(".")[0], set()) <= set(event["payload"]), event
        standing = event["payload"].get("session")
        assert standing is None or {"status", "phase", "waiting", "turn"} <= set(standing)


def test_nothing_of_a_call_comes_after_its_end(live: Live) -> None:
    live.agent([{"calls": [LOOKUP, UNKNOWN, LOOKUP]}, {"text": "Done."}], pool="standing")
    session = live.idle(live.start(live.person("ann")))
    rows = session.events.filter(type__startswith="tool.").order_by("seq")
    by_call: dict[str, list[str]] = {}
    for type, payload in rows.values_list("type", "payload"):
        by_call.setdefault(payload["call_id"], []).append(type.removeprefix("tool."))
    assert len(by_call) == 3
    for names in by_call.values():
        assert names[0] == "requested"
        assert names[-1] in ENDS
        assert not ENDS & set(names[:-1])
