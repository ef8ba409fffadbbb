"""A decision that is kept is delivered by the sweeper, whatever it meets on its way."""

import pytest

from approvals_app import decisions, outbox
from approvals_app.models import Decision
from dexweb.engine.errors import EngineUnavailable, RpcLockConflict
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
