"""Spend limits on the real engine: stopped before a call, raised by a person, and it goes on."""

import uuid
from decimal import Decimal

import pytest
from django.contrib.auth.models import Permission, User

from approvals_app.models import AuditEntry
from dexweb.engine.errors import InvalidAmount, NotBlocked
from sessions_app import actions
from sessions_app.models import ModelPrice, SpendBudget, SpendDay, SpendReservation
from tests.live.conftest import Live, until
from tests.sessions_app.api import build

SCRIPT = [{"text": "The first answer."}, {"text": "The second answer."}]


def budget(amount: str = "0.001", **fields) -> SpendBudget:
    values = {"name": "desk-session", "scope": "session", "period": "total", **fields}
    return SpendBudget.objects.create(amount=Decimal(amount), **values)


@pytest.fixture
def priced(live: Live, standing_worker: None) -> Live:
    """A desk whose every answer costs more than a tenth of a cent."""
    live.agent(SCRIPT, pool="standing")
    ModelPrice.objects.create(name="demo:script", input=100, output=1000)
    return live


@pytest.fixture
def ann(live: Live) -> User:
    user = live.person("ann")
    user.user_permissions.set(Permission.objects.filter(codename="raise_spend"))
    return User.objects.get(pk=user.pk)


def send(user, session):
    actions.send_message(user, session.pk, "And now?", str(uuid.uuid4()))


def raise_by(user, session, amount):
    return actions.raise_spend(user, session.pk, amount, str(uuid.uuid4()))


def blocked(live, session, times=1):
    until(
        lambda: session.events.filter(type="spend.blocked").count() >= times,
        f"a budget to stop it: {live.state(session)}",
    )
    session.refresh_from_db()
    assert (session.phase, session.status) == ("waiting_spend", "running")


def test_a_used_up_budget_stops_the_next_call_until_a_person_raises_it(priced, ann, client):
    budget()
    session = priced.idle(priced.start(ann))
    cost = session.spend
    assert cost > Decimal("0.001")
    with pytest.raises(NotBlocked):
        raise_by(ann, session, "1")
    send(ann, session)
    blocked(priced, session)
    assert (session.spend, session.model_calls) == (cost, 1)
    step = session.steps.get(type="AwaitSpend")
    assert step.status == "waiting" and "desk-session is used up" in step.detail
    assert session.steps.get(step_id="RunModel-2").causes == [step.step_id]
    told = session.events.get(type="spend.blocked").payload
    assert (told["reason"], told["budget"]) == ("used_up", "desk-session")
    assert (Decimal(told["spent"]), Decimal(told["limit"])) == (cost, Decimal("0.001"))

    client.force_login(ann)
    page = client.get(f"/sessions/{session.pk}/head/").content.decode()
    assert "desk-session is used up" in page and "Raise by $" in page
    assert session.title in client.get("/sessions/?waiting=1").content.decode()

    with pytest.raises(InvalidAmount):
        raise_by(ann, session, "much")
    rest = build.client_of(ann)
    answer = rest.post(f"/api/v1/sessions/{session.pk}/raise-spend", {"amount": "2.50"})
    assert answer.status_code == 202 and answer.json()["state"] == "2.5"
    priced.idle(session, turn=2)
    assert session.steps.get(step_id="RunModel-2").text == "The second answer."
    assert session.steps.get(type="AwaitSpend").status == "completed"
    assert session.spend > cost and session.spend_raised == Decimal("2.5")
    assert session.events.get(type="spend.raised").payload["by"] == "ann"
    assert AuditEntry.objects.get(action="spend.raised").detail["amount"] == "2.5"
    shown = rest.get(f"/api/v1/sessions/{session.pk}").json()["spend"]
    panel = client.get(f"/sessions/{session.pk}/steps/{step.step_id}/").content.decode()
    assert "ann lets it spend $2.5 more" in panel
    # On top of what was spent when it was raised, which was over the budget by then.
    assert Decimal(shown["limit"]) == cost + Decimal("2.5")
    assert shown["counted"] == str(session.spend)


def test_who_may_not_raise_cannot_by_any_way_in(priced, ann, client):
    budget("0")
    session = priced.start(ann)
    blocked(priced, session)
    olaf = priced.person("olaf")
    client.force_login(olaf)
    assert client.post(f"/sessions/{session.pk}/raise-spend/", {"amount": "1"}).status_code == 403
    rest = build.client_of(olaf).post(f"/api/v1/sessions/{session.pk}/raise-spend", {"amount": 1})
    assert rest.status_code == 403
    page = client.get(f"/sessions/{session.pk}/head/").content.decode()
    assert "desk-session is used up" in page and "Raise by $" not in page


def test_asking_again_lets_it_go_on_once_the_budget_was_raised(priced, ann, client):
    row = budget("0")
    session = priced.start(ann)
    blocked(priced, session)
    client.force_login(ann)
    again = f"/sessions/{session.pk}/raise-spend/"
    assert client.post(again, {"amount": "0"}).status_code == 302
    blocked(priced, session, times=2)
    SpendBudget.objects.filter(pk=row.pk).update(amount=5)
    assert client.post(again, {"amount": "0"}).status_code == 302
    priced.idle(session)
    assert session.turns.get().state == "completed"
    assert session.spend_raised == 0


def test_a_blocked_turn_can_be_canceled_and_a_blocked_session_stopped(priced, ann):
    budget("0")
    session = priced.start(ann)
    blocked(priced, session)
    actions.cancel_turn(ann, session.pk, "Too dear.", str(uuid.uuid4()))
    priced.idle(session)
    assert session.steps.get(type="AwaitSpend").status == "canceled"
    send(ann, session)
    blocked(priced, session, times=2)
    actions.stop(ann, session.pk, "cancel", "", str(uuid.uuid4()))
    session.refresh_from_db()
    assert session.status == "canceled"


def test_sessions_on_one_budget_overrun_it_by_one_call_each_at_most(priced, ann):
    budget("0.004", scope="agent", name="desk-day", period="day")
    sessions = [priced.start(ann, message=f"Question {n}") for n in range(4)]

    def settled():
        for session in sessions:
            session.refresh_from_db()
        return all(one.phase in ("idle", "waiting_spend") and one.turn for one in sessions)

    until(lambda: settled() and not SpendReservation.objects.exists(), "all to be done or stopped")
    costs = [row.spent for row in SpendDay.objects.all()]
    assert sum(costs) - max(costs) * len(sessions) < Decimal("0.004")
    assert sum(one.spend for one in sessions) == sum(costs)


def test_a_call_that_died_with_its_worker_counts_with_what_it_could_have_cost(live, ann):
    live.agent([{"text": "Late.", "delay": "30s"}])
    ModelPrice.objects.create(name="demo:script", input=100, output=1000)
    budget("1")
    worker = live.worker()
    session = live.start(ann)
    kept = until(SpendReservation.objects.first, "a reservation")
    assert kept.amount > 1
    worker.kill()
    live.worker()
    blocked(live, session)
    assert SpendReservation.objects.get().pk == kept.pk
    assert Decimal(session.events.get(type="spend.blocked").payload["spent"]) == kept.amount
