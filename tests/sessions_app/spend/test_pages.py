"""Spend as people see and set it: the page, the API, the admin site and an agent's file."""

import re
from decimal import Decimal

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command

from approvals_app.models import AuditEntry
from sessions_app.agents_yaml import InvalidAgents, load_agents
from sessions_app.models import Agent, ModelPrice, SpendBudget
from sessions_app.spend.budgets import Budgets
from tests.sessions_app.api import build
from tests.sessions_app.spend.test_budgets import admit, asked, budget, spend

pytestmark = pytest.mark.django_db

AGENT = "agents: {{refund-desk: {{model: 'demo:refund-desk', spend: {}}}}}"


@pytest.fixture
def ann():
    return build.person("ann", "view_session")


@pytest.fixture
def of(ann):
    """A session of ann that spent 1.50 of a budget of 1, and called a model of unknown price."""
    row = build.session(started_by=ann)
    spend(row, "1.5")
    Budgets().settle(admit(asked(row, 2, estimate=None)), None)
    budget(scope="session", period="total", amount="1")
    return row


def test_the_page_shows_budgets_as_meters_and_what_today_cost(client, ann, of):
    client.force_login(ann)
    text = client.get("/spend/").content.decode()
    words = " ".join(re.sub(r"<[^>]+>", " ", text).split())
    assert "each session, in all" in words
    assert "$1.50 of $1.00" in words and "Used up" in words
    assert words.count("$1.50") == 5
    assert "acme:one · 1 call" in words


def test_the_page_costs_the_same_however_many_sessions_there_are(
    client, ann, of, django_assert_max_num_queries
):
    for n in range(30):
        spend(build.session(f"s-{n}", started_by=ann), "0.1")
    client.force_login(ann)
    with django_assert_max_num_queries(20):
        text = client.get("/spend/").content.decode()
    assert text.count('<li class="sum') < 40


def test_the_page_and_the_api_are_for_those_who_may_see_sessions(client):
    stranger = build.person("eve")
    client.force_login(stranger)
    assert client.get("/spend/").status_code == 403
    assert build.client_of(stranger).get("/api/v1/spend").status_code == 403


def test_the_api_tells_the_same_to_the_millionth(ann, of):
    body = build.client_of(ann).get("/api/v1/spend").json()
    assert body["currency"] == "USD"
    (state,) = body["budgets"]
    assert (state["name"], state["amount"], state["agent"]) == ("desk-day", "1.000000", None)
    assert state["sums"] == [
        {
            "who": "A refund",
            "session": of.pk,
            "spent": "1.500000",
            "reserved": "0.000000",
            "limit": "1.000000",
            "used_up": True,
        }
    ]
    assert body["today"]["spent"] == "1.500000"
    assert body["unknown"][0]["model"] == "acme:one"


def test_a_session_tells_its_spend_and_its_limit(ann, of):
    shown = build.client_of(ann).get(f"/api/v1/sessions/{of.pk}").json()["spend"]
    assert (shown["currency"], shown["limit"], shown["unknown"]) == ("USD", "1.000000", False)
    SpendBudget.objects.all().delete()
    assert build.client_of(ann).get(f"/api/v1/sessions/{of.pk}").json()["spend"]["limit"] is None


def test_a_raise_counts_on_top_of_what_was_spent_when_it_was_given(ann, of):
    of.spend_raised = 2
    of.save()
    shown = build.client_of(ann).get(f"/api/v1/sessions/{of.pk}").json()["spend"]
    assert shown["limit"] == "3.500000"
    admit(asked(of, 3, raised="2"))
    shown = build.client_of(ann).get(f"/api/v1/sessions/{of.pk}").json()["spend"]
    assert (shown["limit"], shown["counted"]) == ("3.500000", "1.900000")


def test_a_model_that_has_a_price_by_now_is_unknown_no_more(ann, of):
    ModelPrice.objects.create(name="acme:*", input=1, output=1)
    assert build.client_of(ann).get("/api/v1/spend").json()["unknown"] == []


def test_budgets_and_prices_are_edited_in_the_admin_site_and_audited(client):
    client.force_login(User.objects.create_superuser("root"))
    made = {"name": "all-day", "enabled": "on", "scope": "all", "period": "day", "amount": "50"}
    assert client.post("/admin/sessions_app/spendbudget/add/", made).status_code == 302
    row = SpendBudget.objects.get()
    page = f"/admin/sessions_app/spendbudget/{row.pk}/change/"
    stale = made | {"amount": "60", "seen_revision": "0"}
    assert "Somebody else saved this" in client.post(page, stale).content.decode()
    assert client.post(page, made | {"amount": "60", "seen_revision": "1"}).status_code == 302
    row.refresh_from_db()
    assert (row.amount, row.revision) == (60, 2)
    price = {"name": " acme:one", "input": "1.25", "output": "10"}
    price |= {"valid_from_0": "2026-01-01", "valid_from_1": "00:00:00"}
    assert client.post("/admin/sessions_app/modelprice/add/", price).status_code == 302
    assert ModelPrice.objects.get().name == "acme:one"
    actions = list(AuditEntry.objects.order_by("seq").values_list("action", flat=True))
    assert actions == ["spendbudget.created", "spendbudget.changed", "modelprice.created"]


def test_an_agents_file_sets_its_budgets_and_importing_it_again_changes_nothing():
    text = AGENT.format("{session: 5, day: 0.5}")
    load_agents(text)
    assert {change.what for change in load_agents(text).changes} == {"unchanged"}
    rows = SpendBudget.objects.values_list("name", "scope", "period", "amount")
    assert list(rows) == [
        ("refund-desk-day", "agent", "day", Decimal("0.5")),
        ("refund-desk-session", "session", "total", 5),
    ]
    load_agents(AGENT.format("{session: 6, allow_unknown: true}"))
    row = SpendBudget.objects.get()
    assert (row.amount, row.allow_unknown, row.revision) == (6, True, 2)


def test_an_import_says_what_it_did_to_budgets_and_it_is_audited(tmp_path, capsys):
    file = tmp_path / "agents.yaml"
    said = []
    for spend_of in ("{session: 5, day: 1}", "{session: 6}", "{session: 6}"):
        file.write_text(AGENT.format(spend_of))
        call_command("import_agents", str(file))
        said += [line for line in capsys.readouterr().out.splitlines() if "budget" in line]
    assert said == [
        "created budget refund-desk-session",
        "created budget refund-desk-day",
        "changed budget refund-desk-session",
        "deleted budget refund-desk-day",
        "unchanged budget refund-desk-session",
    ]
    entries = AuditEntry.objects.filter(action__startswith="spendbudget").order_by("seq")
    assert [entry.action.partition(".")[2] for entry in entries] == [
        "created",
        "created",
        "changed",
        "deleted",
    ]


def test_a_file_that_says_nothing_of_spend_leaves_budgets_as_they_are():
    load_agents(AGENT.format("{session: 5}"))
    budget("by-hand", agent=Agent.objects.get())
    load_agents("agents: {refund-desk: {model: 'demo:refund-desk'}}")
    assert SpendBudget.objects.count() == 2


@pytest.mark.parametrize("amount", ["-1", "much", "true", ".nan", "[1]"])
def test_what_is_no_amount_is_refused_with_its_place(amount):
    with pytest.raises(InvalidAgents) as refusal:
        load_agents(AGENT.format(f"{{session: {amount}}}"))
    assert "agents.refund-desk.spend.session: must be an amount" in refusal.value.errors[0]
