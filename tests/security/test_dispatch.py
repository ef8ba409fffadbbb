"""An approval is for the program, the policy and the people it was given under, and for no other."""

import pytest

from approvals_app.models import Decision
from sessions_app.models import Connection, Credential
from sessions_app.steps.call_tool import Begun
from tests.sessions_app.steps.test_call_tool import Desk

pytestmark = pytest.mark.django_db


@pytest.fixture
def desk():
    return Desk()


def test_an_approved_call_of_the_same_tool_begins(desk):
    assert isinstance(desk.begin(), Begun)


CHANGES = {
    "program": {"command": ["other-shop"]},
    "environment": {"env": {"SHOP_DB": "elsewhere.sqlite3"}},
    "address": {"transport": "http", "url": "http://127.0.0.1:9/mcp"},
    "headers": {"headers": {"X-Tenant": "another"}},
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_connection_that_leads_elsewhere_by_now_voids_the_approval(desk, what):
    Connection.objects.update(**CHANGES[what])
    answer = desk.begin()
    assert (answer.outcome, answer.ran) == ("invalidated", False)
    assert "The connection shop was changed" in answer.words
    assert desk.call.begun_attempt == 0


def test_another_credential_voids_the_approval(desk):
    other = Credential.objects.create(name="live-shop", value="k" * 20)
    Connection.objects.update(credential=other)
    assert "The connection shop was changed" in desk.begin().words


def test_a_new_value_under_the_same_name_does_not(desk):
    key = Credential.objects.create(name="shop-key", value="k" * 20)
    Connection.objects.update(credential=key)
    desk.ask()
    key.value = "rotated" * 4
    key.save()
    assert isinstance(desk.begin(), Begun)


def test_what_is_asked_anew_is_for_the_connection_of_now(desk):
    Connection.objects.update(command=["other-shop"])
    asked_again = desk.begin().ask_again
    desk.call.outcome = ""
    desk.interrupt.state = "approved"
    desk.ask(asked_again)
    assert isinstance(desk.begin(), Begun)


def test_an_approval_that_no_person_of_ours_gave_is_none(desk):
    """Whoever reaches the engine itself could name anybody as the one who approved."""
    Decision.objects.all().delete()
    answer = desk.begin()
    assert answer.outcome == "invalidated"
    assert "no decision of ann is recorded" in answer.words


@pytest.mark.parametrize("change", [{"verdict": "reject"}, {"state": "refused"}])
def test_another_word_of_that_person_is_no_approval(desk, change):
    Decision.objects.update(**change)
    assert "no decision of ann is recorded" in desk.begin().words


@pytest.mark.parametrize("approved", [True, False])
def test_a_read_that_is_a_write_by_now_is_not_repeated_as_a_read(desk, approved):
    desk.effect = "read"
    answer = desk.begin(approved=approved)
    assert (answer.outcome, answer.ask_again) == ("invalidated", None)
    assert "writes, never repeated" in answer.words


def test_silence_approves_nothing_once_the_policy_says_so(desk):
    desk.effect = "read"
    desk.policy.effect = "read"
    desk.policy.at_deadline = "approve"
    desk.policy.save()
    desk.by_nobody = True
    assert isinstance(desk.begin(), Begun)

    desk.call.begun_attempt = 0
    desk.call.save()
    desk.policy.at_deadline = "reject"
    desk.policy.save()
    assert "it does not run because nobody answered" in desk.begin().words
