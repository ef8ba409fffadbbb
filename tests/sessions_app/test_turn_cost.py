"""A turn asks the database a fixed number of things, however long its session is."""

from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pydantic_ai.messages import ModelResponse, TextPart

from sessions_app import projection
from sessions_app.flow import fact, state, terms
from sessions_app.llm.history import response_json
from sessions_app.llm.stream import ModelReply, RequestedCall
from sessions_app.steps import run_model
from tests.sessions_app.api import build

pytestmark = pytest.mark.django_db

ANN = terms.Actor(0, "ann")
#: Of a model call that answers in words: its start recorded, the conversation read, its end recorded.
MOST = 28


@pytest.fixture
def session():
    build.agent()
    begun = fact.SessionStarted("session_started", "refund-desk", "A refund", ANN, {}, "run-1")
    projection.record("s-1", [fact.Fact(1, build.NOON.isoformat(), begun)])


def turn(number: int, *calls: str) -> int:
    """Run the Step of turn ``number``, as the worker does. Returns how many queries it made."""
    message = terms.UserMessage(f"m-{number}", "Hello", ANN)
    step_id = f"RunModel-{number}"
    bodies = (
        fact.MessageQueued("message_queued", message),
        fact.TurnStarted("turn_started", number, message.message_id),
        fact.PhaseChanged("phase_changed", "thinking"),
        fact.StepChanged("step_changed", step_id, "RunModel", number, number, "scheduled"),
    )
    facts = [
        fact.Fact(4 * number - 2 + place, build.NOON.isoformat(), body)
        for place, body in enumerate(bodies)
    ]
    given = state.RunModelInput(
        state.StepContext("s-1", step_id, 1, number, facts), "refund-desk", True
    )
    asked = tuple(RequestedCall(f"call-{number}-{tool}", tool, "{}") for tool in calls)
    with CaptureQueriesContext(
        connection,
    ) as made:
        begun = run_model.begin(given)
        assert isinstance(begun, run_model.Begun)
        run_model.gather(given, begun)
        result = run_model.complete(given, begun, reply(asked), [], [({}, "")] * len(asked), False)
    assert result.error == ""
    assert len(result.calls) == len(calls)
    return len(made)


def reply(calls: tuple[RequestedCall, ...]) -> ModelReply:
    kept = response_json(ModelResponse(parts=[TextPart("Hello.")]))
    return ModelReply("Hello.", "", calls, kept, "demo", 1, 1, Decimal(0), "stop")


def test_a_turn_costs_no_more_queries_in_a_long_session_than_in_a_short_one(session):
    first = turn(1)
    for number in range(2, 20):
        turn(number)
    assert turn(20) <= first <= MOST


def test_calls_cost_a_row_each_and_the_policies_are_read_once_for_all_of_them(session):
    in_words, one, four = turn(1), turn(2, "shop__a"), turn(3, *(f"shop__{x}" for x in "abcd"))
    assert four - one == 3
    assert one <= in_words + 2
