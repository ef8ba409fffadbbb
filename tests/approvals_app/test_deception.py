"""Text that is not what it seems, and text that only looks foreign."""

import pytest
from django.template import Context, Template

from approvals_app.argument_rows import argument_rows
from approvals_app.deception import segments, suspicious


def shown(text: str) -> str:
    return Template("{% load dexweb %}{{ text|visible }}").render(Context({"text": text}))


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ("pay\u200bpal", "hidden"),
        ("soft\u00adhyphen", "hidden"),
        ("tag\U000e0041", "hidden"),
        ("variation x\ufe01", "hidden"),
        ("\u3164", "hidden"),
        ("\ud800", "hidden"),
        ("desk\u202emoc", "bidi"),
        ("\u2066x\u2069", "bidi"),
        ("\x1b[2J", "control"),
        ("over\rwritten", "control"),
        ("a\u00a0b", "space"),
        ("p\u0430ypal", "lookalike"),
        ("\u0440\u0430\u0443\u0440\u0430l.com", "lookalike"),
        ("\u0441\u043e\u0440\u0435 it", "lookalike"),
        ("\uff50\uff41\uff59", "lookalike"),
        ("g\u03bfogle", "lookalike"),
    ],
)
def test_a_character_that_deceives_is_marked(text, mark):
    assert mark in {segment.mark for segment in segments(text)}
    assert suspicious(text)


@pytest.mark.parametrize(
    "text",
    [
        "plain, with a\ttab and\na line",
        "José, Zoë, Łódź, naïve",
        "Привет, это рост и сор",
        "Ελληνικά κείμενο",
        "日本語のテキスト",
        "\u03b1 = 0.05, 10 k\u03a9, 5 \u00b5m",
        "❤\ufe0f and 👩\u200d👩\u200d👧",
        "1\ufe0f\u20e3",
    ],
)
def test_ordinary_text_of_any_script_is_left_alone(text):
    assert not suspicious(text)
    assert "".join(segment.text for segment in segments(text)) == text


def test_a_hidden_character_is_shown_by_its_number_and_named():
    assert 'title="RIGHT-TO-LEFT OVERRIDE (U+202E)"' in shown("a\u202eb")
    assert ">U+202E<" in shown("a\u202eb")
    assert "\u202e" not in shown("a\u202eb")


def test_what_is_shown_is_escaped():
    assert shown('<img src=x onerror="1">') == "&lt;img src=x onerror=&quot;1&quot;&gt;"


def test_numbers_of_arguments_are_shown_as_they_are_written():
    rows = argument_rows('{"a": 12345678901234567890123, "b": 1.10, "c": 1e400, "d": -0.0}')
    assert [row.text for row in rows] == ["12345678901234567890123", "1.10", "1e400", "-0.0"]


def test_types_of_arguments_are_told_apart():
    rows = argument_rows('{"a": "1", "b": 1, "c": true, "d": null, "e": [], "f": {}}')
    assert [(row.kind, row.text) for row in rows] == [
        ("text", "1"),
        ("number", "1"),
        ("word", "true"),
        ("word", "null"),
        ("word", "[]"),
        ("word", "{}"),
    ]


def test_nested_arguments_are_all_shown_in_order():
    rows = argument_rows('{"to": ["ann", {"name": "bob"}], "n": 1}')
    assert [(row.depth, row.name, row.text) for row in rows] == [
        (0, "to", "2 items"),
        (1, "1", "ann"),
        (1, "2", "1 field"),
        (2, "name", "bob"),
        (0, "n", "1"),
    ]


def test_a_name_that_deceives_counts_too():
    [row] = argument_rows('{"a\u200bmount": 1}')
    assert row.odd


@pytest.mark.parametrize(
    "text",
    ['{"a": ' + "[" * 3000 + "]" * 3000 + "}", '{"a": [' + "1," * 5000 + "1]}", "not json"],
    ids=["deep", "long", "broken"],
)
def test_arguments_that_no_table_can_hold_are_shown_whole_as_text(text):
    [row] = argument_rows(text)
    assert (row.kind, row.text) == ("json", text)


def test_what_lies_very_deep_is_shown_as_json_with_its_digits():
    rows = argument_rows('{"a":' * 12 + '[1.50, "x"]' + "}" * 12)
    assert rows[-1].kind == "json"
    assert '[1.50, "x"]' in rows[-1].text
