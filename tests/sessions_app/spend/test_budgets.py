"""The built-in spend limit: what it lets through, what it stops, and how it counts."""

import threading
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from django.db import connection, transaction

from sessions_app.models import SpendBudget, SpendDay, SpendReservation, UnpricedModel
from sessions_app.spend.budgets import Budgets
from sessions_app.spend.limit import Admitted, ModelCallAsked, Refused
from tests.sessions_app.api import build

pytestmark = pytest.mark.django_db


def budget(name="desk-day", scope="agent", period="day", amount="1", **fields):
    return SpendBudget.objects.create(
        name=name, scope=scope, period=period, amount=Decimal(amount), **fields
    )


def asked(of, n=1, estimate="0.40", raised="0", model="acme:one"):
    return ModelCallAsked(
        session_id=of.pk,
        step_id=f"RunModel-{n}",
        attempt=1,
        agent=of.agent_id,
        user=of.started_by_id,
        model=model,
        estimate=None if estimate is None else Decimal(estimate),
        raised=Decimal(raised),
    )


def admit(call):
    answer = Budgets().admit(call)
    assert isinstance(answer, Admitted), answer
    return answer.reservation


def refused(call):
    answer = Budgets().admit(call)
    assert isinstance(answer, Refused), answer
    return answer


def spend(of, cost, n=1, **fields):
    """A call that was made and cost this much."""
    Budgets().settle(admit(asked(of, n, **fields)), Decimal(cost))


def test_without_a_budget_every_call_is_let_through_and_counted():
    of = build.session()
    spend(of, "0.25")
    spend(of, "0.25", 2)
    assert SpendDay.objects.get().spent == Decimal("0.5")
    assert not SpendReservation.objects.exists()


def test_a_used_up_budget_stops_the_next_call_and_says_which_and_how_much():
    of = build.session()
    budget(amount="1")
    spend(of, "1.02")
    answer = refused(asked(of, 2))
    assert answer.reason == "used_up"
    assert answer.words == "The budget desk-day is used up for today: $1.02 of $1.00."
    assert (answer.budget, answer.spent, answer.limit) == ("desk-day", Decimal("1.02"), 1)


def test_a_budget_counts_what_was_spent_before_it_was_made():
    of = build.session()
    spend(of, "3")
    budget(amount="2")
    assert refused(asked(of, 2)).spent == 3


@pytest.mark.parametrize(
    ("fields", "other_is_stopped"),
    [
        ({"scope": "session", "period": "total"}, False),
        ({"scope": "agent"}, True),
        ({"scope": "user"}, False),
        ({"scope": "all", "period": "month"}, True),
    ],
)
def test_a_budget_counts_sessions_agents_users_or_all(fields, other_is_stopped):
    first = build.session("one", started_by=build.person("ann"))
    second = build.session("two", started_by=build.person("bob"))
    budget(**fields)
    spend(first, "1")
    assert isinstance(Budgets().admit(asked(first, 2)), Refused)
    assert isinstance(Budgets().admit(asked(second, 2)), Refused) is other_is_stopped


def test_a_budget_of_one_agent_leaves_others_alone():
    desk, other = build.session("one"), build.session("two", agent=build.agent("other"))
    budget(scope="all", agent=desk.agent, amount="0")
    refused(asked(desk))
    admit(asked(other))


def test_a_day_and_a_month_begin_anew_and_say_when(settings):
    of = build.session()
    day, month = budget(amount="1"), budget("desk-month", period="month", amount="2")
    yesterday = SpendDay.objects.create(
        session=of, agent=of.agent, day=datetime(2020, 1, 31, tzinfo=UTC).date(), spent=9
    )
    admit(asked(of))
    assert day.until(yesterday.day).isoformat() == "2020-02-01"
    assert month.until(yesterday.day).isoformat() == "2020-02-01"
    assert month.since(yesterday.day).isoformat() == "2020-01-01"
    spend(of, "1", 2)
    assert refused(asked(of, 3)).until > datetime.now(UTC)


def test_what_is_reserved_counts_until_it_is_settled():
    of = build.session()
    budget(amount="1")
    first = admit(asked(of, 1, estimate="1"))
    assert refused(asked(of, 2)).spent == 1
    Budgets().settle(first, Decimal("0.1"))
    admit(asked(of, 2))


def test_a_call_that_was_cut_off_counts_with_what_it_could_have_cost():
    of = build.session()
    budget(amount="1")
    admit(asked(of, 1, estimate="0.6"))
    admit(asked(of, 2, estimate="0.6"))
    assert refused(asked(of, 3)).spent == Decimal("1.2")


def test_a_call_that_was_certainly_not_billed_costs_nothing():
    of = build.session()
    budget(amount="1")
    Budgets().settle(admit(asked(of, 1, estimate="2")), Decimal(0))
    admit(asked(of, 2))


def test_a_call_whose_cost_stays_unknown_counts_with_its_estimate():
    of = build.session()
    budget(amount="1")
    Budgets().settle(admit(asked(of, 1, estimate="0.7")), None)
    assert SpendDay.objects.get().spent == Decimal("0.7")


def test_a_free_call_is_let_through_whatever_was_spent():
    of = build.session()
    budget(amount="0")
    admit(asked(of, estimate="0"))


def test_a_call_of_unknown_price_is_stopped_unless_the_budget_allows_it():
    of = build.session()
    strict = budget(amount="5")
    answer = refused(asked(of, estimate=None))
    assert answer.reason == "unknown_price"
    assert "acme:one" in answer.words and "Enter its price" in answer.words
    strict.allow_unknown = True
    strict.save()
    Budgets().settle(admit(asked(of, estimate=None)), None)
    assert UnpricedModel.objects.get().calls == 1
    assert not SpendDay.objects.exists()


def test_a_raise_lets_the_session_spend_that_much_over_every_budget():
    of, other = build.session("one"), build.session("two")
    budget(amount="1")
    spend(of, "3")
    refused(asked(of, 2))
    spend(of, "0.6", 2, raised="1")
    spend(of, "0.6", 3, raised="1")
    refused(asked(of, 4, raised="1"))
    refused(asked(other, raised="0"))
    assert SpendDay.objects.get(session=of).raised == Decimal("1.2")


def test_a_disabled_budget_stops_nothing():
    budget(amount="0", enabled=False)
    admit(asked(build.session()))


@pytest.mark.django_db(transaction=True)
def test_sessions_that_ask_at_once_overrun_a_budget_by_one_call_each_at_most():
    """Eight at once, each call costs 0.4 of a budget of 1: three fit, whoever comes first."""
    sessions = [build.session(f"s-{n}") for n in range(8)]
    budget(amount="1")
    budget("all-day", scope="all", amount="1")
    gate, answers = threading.Barrier(len(sessions)), []

    def ask(of):
        try:
            gate.wait(10)
            with transaction.atomic():
                answers.append(Budgets().admit(asked(of)))
        finally:
            connection.close()

    threads = [threading.Thread(target=ask, args=(of,)) for of in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    admitted = [answer for answer in answers if isinstance(answer, Admitted)]
    assert (len(admitted), len(answers)) == (3, 8)
    for answer in admitted:
        Budgets().settle(answer.reservation, Decimal("0.4"))
    assert sum(row.spent for row in SpendDay.objects.all()) == Decimal("1.2")
