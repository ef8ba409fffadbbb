from decimal import Decimal

import pytest

from sessions_app.tools.redaction import redact
from sessions_app.tools.schemas import validate_args
from sessions_app.tools.shop.tools import TOOLS

REFUND = next(tool.input_schema for tool in TOOLS if tool.name == "issue_refund")
GOOD = {"order_id": "A-1042", "amount": 184.90, "currency": "EUR", "reason": "late"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, None),
        ({"amount": Decimal("184.90")}, None),
        ({"amount": "184.90"}, "$.amount: '184.90' is not of type 'number'"),
        ({"amount": 0}, "$.amount: 0 is less than or equal to the minimum of 0"),
        ({"amount": True}, "$.amount: True is not of type 'number'"),
        ({"currency": "euro"}, "$.currency: 'euro' does not match"),
        ({"tip": 1}, "$: Additional properties are not allowed ('tip' was unexpected)"),
    ],
)
def test_arguments_that_do_not_fit_say_where_and_why(change, words):
    errors = validate_args(REFUND, GOOD | change)
    assert errors == [] if words is None else errors[0].startswith(words)


def test_every_error_is_told_with_its_path():
    schema = {"properties": {"lines": {"items": {"type": "number"}}}}
    assert validate_args(schema, {"lines": [1, "a", "b"]}) == [
        "$.lines[1]: 'a' is not of type 'number'",
        "$.lines[2]: 'b' is not of type 'number'",
    ]


@pytest.mark.parametrize("args", [None, [], "text", 5])
def test_arguments_that_are_no_object_are_refused(args):
    assert "is not of type 'object'" in validate_args(REFUND, args)[0]


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "nonsense"}, "schema is broken"),
        ({"$ref": "#/$defs/nowhere"}, "refers to something it does not hold"),
        ({"$ref": "http://127.0.0.1:9/schema.json"}, "refers to something it does not hold"),
    ],
)
def test_a_broken_schema_lets_nothing_through(schema, words):
    assert words in validate_args(schema, {})[0]


def test_many_errors_and_long_values_stay_readable():
    errors = validate_args(
        {"additionalProperties": {"type": "number"}}, {str(n): "x" * 999 for n in range(50)}
    )
    assert len(errors) == 21 and errors[-1] == "… and 30 more."
    assert all(len(error) < 400 for error in errors)


def test_a_secret_is_hidden_but_a_very_short_one_leaves_words_alone():
    assert (
        redact("key=abcdefgh12, again abcdefgh12", "abcdefgh12") == "key=[hidden], again [hidden]"
    )
    assert redact("a cat", "a") == "a cat"
    assert redact("nothing", "") == "nothing"
    assert redact("longer-secret-1 and longer-secret", ["longer-secret", "longer-secret-1"]) == (
        "[hidden] and [hidden]"
    )
