"""JSON as people read it."""

import json

import pytest

from sessions_app.json_text import indented


def test_every_digit_of_a_number_is_kept():
    text = '{"id": 9007199254740993, "amount": 184.90, "tiny": 1e-400}'
    shown = indented(text)
    for number in ("9007199254740993", "184.90", "1e-400"):
        assert number in shown


@pytest.mark.parametrize(
    "value",
    [{}, [], {"a": []}, {"a": {"b": [1, "x, y", {"c": None}]}}, ['quote " and \\ and {'], {"": ""}],
)
def test_it_says_the_same_as_before(value):
    assert json.loads(indented(json.dumps(value))) == value


def test_each_value_of_an_object_has_a_line():
    assert indented('{"a": 1, "b": [true]}') == '{\n  "a": 1,\n  "b": [\n    true\n  ]\n}'


def test_text_that_was_cut_off_is_shown_to_its_end():
    assert indented('{"a": 1, "b": "begins he').endswith('"b": "begins he')


def test_what_is_no_object_or_array_is_left_alone():
    assert indented("The order, it was late.") == "The order, it was late."
