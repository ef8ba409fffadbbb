"""What a model says, or a person raises, never becomes something that no row could keep."""

from decimal import Decimal

import pytest

from dexweb.engine.errors import InvalidAmount
from sessions_app import actions
from sessions_app.tools import builtin
from tests.sessions_app.api import build


def test_a_question_of_a_model_has_no_nul_and_its_choices_come_back_as_they_were_sent():
    [asked] = builtin.questions(
        {"questions": [{"question": "a\x00?", "choices": ["b\x00", "c\nd"]}]}
    )
    assert (asked.question, asked.choices) == ("a\ufffd?", ["b\ufffd", "c d"])


@pytest.mark.django_db
def test_raises_of_one_session_do_not_add_up_to_more_than_its_row_can_hold():
    session = build.session(spend_raised=Decimal(actions.MOST_RAISED_IN_ALL))
    with pytest.raises(InvalidAmount):
        actions.raise_spend(build.person("ann", "raise_spend"), session.pk, "1", "r-1")
