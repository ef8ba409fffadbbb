"""A decision that is kept is delivered by the sweeper, whatever it meets on its way."""

from datetime import UTC, datetime

import pytest
from rest_framework.authtoken.models import Token

from approvals_app import decisions, outbox
from approvals_app.models import AuditEntry, Decision
from dexweb.engine.errors import (
    EngineStateUnreadable,
    EngineUnavailable,
    InterruptExpired,
    RpcLockConflict,
)
from tests.sessions_app.api import build

pytestmark = pytest.mark.django_db


class Engine:
    """An engine that answers each decision with the next of ``answers``; at last it takes it."""

    answers: list = []
    taken: list = []

    async def resolve_interrupt(self, session_id, rpc):
        if self.answers:
            raise self.answers.pop(0)
        self.taken.append(rpc.request_id)


@pytest.fixture
def engine(monkeypatch):
    class Fresh(Engine):
        answers: list = []
        taken: list = []

    monkeypatch.setattr(decisions, "SessionEngine", Fresh)
    monkeypatch.setattr(outbox, "_failures", {})
    monkeypatch.setattr(outbox, "_silences", {})
    return Fresh


@pytest.mark.parametrize("kind", ["hold", "rpc"])
def test_a_kept_decision_that_meets_a_lock_stays_kept_until_it_is_let_go(engine, kind):
    ann = build.person("ann", *build.LOOK, keys=("refunds.approve",))
    interrupt = build.interrupt(build.session())
    engine.answers = [EngineUnavailable(), RpcLockConflict(holder="bob", lock_kind=kind)]
    with pytest.raises(EngineUnavailable) as away:
        decisions.decide(
            ann,
            interrupt.pk,
            verdict="approve",
            revision=1,
            args_hash=interrupt.args_hash,
            request_id="r-1",
        )
    assert away.value.delivery == "delivery_pending"

    outbox.sweep()
    assert Decision.objects.get().state == "delivery_pending"

    outbox.sweep()
    assert Decision.objects.get().state == "delivered"
    assert engine.taken == ["r-1"]


@pytest.mark.parametrize("request_id", ["r-1", "r-2"])
def test_a_kept_decision_stays_kept_when_its_person_says_it_again_and_somebody_holds_it(
    engine, request_id
):
    ann = build.person("ann", *build.LOOK, keys=("refunds.approve",))
    interrupt = build.interrupt(build.session())

    def approve(request_id):
        said = {"verdict": "approve", "revision": 1, "args_hash": interrupt.args_hash}
        decisions.decide(ann, interrupt.pk, **said, request_id=request_id)

    engine.answers = [EngineUnavailable(), RpcLockConflict(holder="bob", lock_kind="hold")]
    with pytest.raises(EngineUnavailable):
        approve("r-1")
    with pytest.raises(RpcLockConflict, match=r"bob .* is kept and will be delivered") as refusal:
        approve(request_id)
    assert refusal.value.delivery == "delivery_pending"
    assert "bob is working on it" in Decision.objects.get().why_kept
    assert not AuditEntry.objects.exists()
    outbox.sweep()
    assert Decision.objects.get().state == "delivered"
    assert engine.taken == ["r-1"]


DECIDED = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def kept(client, engine):
    """A decision that ann sent with her token while the engine was away, at `DECIDED`."""
    ann = build.person("ann", *build.LOOK, keys=("refunds.approve",))
    interrupt = build.interrupt(build.session())
    engine.answers = [EngineUnavailable()]
    answer = client.post(
        f"/api/v1/approvals/{interrupt.pk}/decide",
        {"verdict": "approve", "revision": 1, "args_hash": interrupt.args_hash},
        content_type="application/json",
        headers={"Authorization": f"Token {Token.objects.create(user=ann).key}"},
    )
    assert answer.json()["delivery"] == "delivery_pending"
    assert not AuditEntry.objects.exists()
    Decision.objects.update(created_at=DECIDED)
    return Decision.objects.get()


def test_a_kept_decision_is_audited_once_by_the_way_and_at_the_time_of_its_person(kept):
    overtaken = decisions.pending_delivery()
    outbox.sweep()
    for decision in overtaken:
        decisions.redeliver(decision)
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.actor_name, entry.via) == ("decision.approve", "ann", "api:token")
    assert entry.detail["decided_at"] == DECIDED.isoformat()


@pytest.mark.parametrize("why", ["interrupt_expired", "not_allowed"])
def test_a_kept_decision_that_is_refused_in_the_end_is_audited_once_too(engine, kept, why):
    if why == "not_allowed":
        kept.actor.groups.clear()
    engine.answers = [InterruptExpired(), InterruptExpired()]
    overtaken = decisions.pending_delivery()
    outbox.sweep()
    for decision in overtaken:
        decisions.redeliver(decision)
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.actor_name, entry.via) == ("decision.refused", "ann", "api:token")
    assert (entry.detail["code"], entry.detail["verdict"]) == (why, "approve")
    assert entry.detail["decided_at"] == DECIDED.isoformat()


def one_more_kept(interrupt, request_id):
    return Decision.objects.create(
        request_id=request_id,
        interrupt=interrupt,
        actor=build.person(f"ann-{request_id}", *build.LOOK, keys=("refunds.approve",)),
        verdict="approve",
        revision=1,
        args_hash=interrupt.args_hash,
        state="delivery_pending",
    )


def test_a_missing_key_is_logged_once_with_what_to_do_and_not_tried_again_at_once(engine, caplog):
    interrupt = build.interrupt(build.session())
    waiting = [one_more_kept(interrupt, "r-key-1"), one_more_kept(interrupt, "r-key-2")]
    engine.answers = [EngineStateUnreadable() for _ in range(10)]
    for _ in range(3):
        outbox.sweep()
    [line] = [record.getMessage() for record in caplog.records]
    assert "not delivered yet: 2." in line
    assert "has to add that key" in line
    assert len(engine.answers) == 8
    waiting[0].refresh_from_db()
    assert "has to add that key" in waiting[0].why_kept


def test_an_engine_that_is_away_is_logged_once_and_tried_at_every_sweep(engine, caplog):
    one_more_kept(build.interrupt(build.session()), "r-away")
    engine.answers = [EngineUnavailable() for _ in range(3)]
    for _ in range(4):
        outbox.sweep()
    assert len(caplog.records) == 1
    assert engine.taken == ["r-away"]
