"""A tool's schema comes from its server: checking arguments by it ends in time, whatever it says."""

import time
from itertools import pairwise

import pytest

from sessions_app import arguments
from sessions_app.tools import schemas
from sessions_app.tools.schemas import validate_args

BACKTRACKING = {"type": "string", "pattern": "^(a+)+$"}
RUNS_AWAY = "a" * 40 + "!"


def of_s(schema, **more):
    return {"type": "object", "properties": {"s": schema}, **more}


def doubling(levels=40):
    """Each level asks the next one twice: 2^40 questions in a few lines."""
    names = [f"level{n}" for n in range(levels + 1)]
    defs = {name: {"anyOf": [{"$ref": f"#/$defs/{below}"}] * 2} for name, below in pairwise(names)}
    return of_s({"$ref": "#/$defs/level0"}, **{"$defs": {**defs, names[-1]: {"type": "null"}}})


HOSTILE = {
    "pattern": (of_s(BACKTRACKING), {"s": RUNS_AWAY}),
    "names": ({"patternProperties": {"^(a+)+$": {}}}, {RUNS_AWAY: 1}),
    "unevaluated": (
        {"patternProperties": {"^(a|a)*$": {}}, "unevaluatedProperties": False},
        {RUNS_AWAY: 1},
    ),
    "references": (doubling(), {"s": "x"}),
    "another dialect inside": (
        of_s({"$schema": "http://json-schema.org/draft-07/schema#", **BACKTRACKING}),
        {"s": RUNS_AWAY},
    ),
    "unique": (of_s({"uniqueItems": True}), {"s": [{"n": n} for n in range(9000)] + [[]]}),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_check_that_would_run_away_is_ended_and_the_call_does_not_run(what, monkeypatch):
    monkeypatch.setattr(schemas, "LIMIT_SECONDS", 0.5)
    schema, args = HOSTILE[what]
    began = time.monotonic()
    [error] = validate_args(schema, args)
    assert "takes too long" in error
    assert time.monotonic() - began < 60


def test_an_honest_pattern_still_says_what_is_wrong():
    schema = of_s({"type": "string", "pattern": r"^A-\d+$"})
    assert validate_args(schema, {"s": "A-1042"}) == []
    assert validate_args(schema, {"s": "B-1"}) == [r"$.s: 'B-1' does not match '^A-\\d+$'"]


def test_exact_numbers_are_checked_beside_a_pattern():
    schema = {"properties": {"n": {"type": "integer", "maximum": 2**60}, "pattern": {}}}
    assert validate_args(schema, {"n": 2**60}) == []
    assert validate_args(schema, {"n": 2**60 + 1}) != []


def test_a_name_that_is_given_twice_among_very_many_is_found_in_time():
    names = ", ".join(f'"n{n}": 1' for n in range(60_000))
    began = time.monotonic()
    with pytest.raises(ValueError, match="n59999"):
        arguments.parse(f'{{{names}, "n59999": 2}}')
    # Looked for pair by pair it would take many minutes.
    assert time.monotonic() - began < 20
