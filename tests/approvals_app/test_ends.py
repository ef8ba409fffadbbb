"""The ways in which a wait for a person ends are told apart, to people and to the model."""

import pytest

from approvals_app.models import Interrupt
from sessions_app.flow import rules
from sessions_app.state_words import interrupt_words
from tests.sessions_app.api import build

ENDS = ["approved", "rejected", "expired", "canceled", "superseded", "invalidated"]


@pytest.fixture
def approver(client, db):
    client.force_login(build.person("ann", *build.LOOK, keys=("refunds.approve",)))
    return client


def test_each_end_has_its_own_words(approver):
    session = build.session()
    told = set()
    for end in ENDS:
        build.interrupt(session, f"i-{end}", state=end, decided_at=build.NOON)
        page = approver.get(f"/approvals/i-{end}/").content.decode()
        words = page.partition('<p class="outcome-words">')[2].partition("</p>")[0]
        assert interrupt_words(end).words in page
        told.add(words.strip())
    assert len(told) == len(ENDS)


@pytest.mark.parametrize("end", ["expired", "canceled"])
def test_what_nobody_decided_is_nobodys_decision(approver, end):
    build.interrupt(build.session(), state=end, decided_at=build.NOON)
    page = approver.get("/approvals/i-1/").content.decode()
    assert "rejected" not in page.lower()
    shown = approver.get("/api/v1/approvals/i-1/").json()
    assert (shown["state"], shown["decided_by"]) == (end, "")


@pytest.mark.parametrize("end", [one for one in Interrupt.State.values if one != "pending"])
def test_an_ended_one_has_no_buttons_and_is_found_again(approver, end):
    build.interrupt(build.session(), state=end, decided_at=build.NOON)
    page = approver.get("/approvals/i-1/").content.decode()
    assert 'name="verdict"' not in page
    assert 'data-row="i-1"' in approver.get("/approvals/?state=decided").content.decode()
    assert 'data-row="i-1"' not in approver.get("/approvals/").content.decode()


def test_the_model_is_told_each_in_words_of_its_own():
    told = {
        rules.rejected_words("refund", "ann", "Too much."),
        rules.expired_words("refund"),
        rules.canceled_words("refund"),
        rules.unknown_words("refund", "it took longer than allowed"),
        rules.session_ended_words("refund"),
    }
    assert len(told) == 5
    assert "Too much." in rules.rejected_words("refund", "ann", "Too much.")
    assert "rejected" not in rules.expired_words("refund")
    assert "may have run" in rules.unknown_words("refund", "it was cut off")
