import dataclasses
from datetime import UTC, datetime, timedelta

import pytest

from sessions_app.graph.dot import escape, first_line, to_dot
from sessions_app.graph.text import shorten, visible
from tests.sessions_app.graph.build import HOSTILE_TEXTS, fan, only_node, only_part, step

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


def test_the_same_part_gives_the_same_dot():
    assert to_dot(only_part(*fan(5))) == to_dot(only_part(*fan(5)))


@pytest.mark.parametrize(
    "change",
    [
        {"status": "active"},
        {"status": "failed"},
        {"outcome": "rejected"},
        {"attempt": 4},
        {"detail": "A-1042"},
        {"started_at": NOON, "ended_at": NOON + timedelta(seconds=9)},
    ],
)
def test_how_a_step_stands_changes_nothing_in_the_dot(change):
    steps = fan(3)
    changed = [dataclasses.replace(steps[1], **change) if s is steps[1] else s for s in steps]
    assert only_part(*changed) != only_part(*steps)
    assert to_dot(only_part(*changed)) == to_dot(only_part(*steps))


def test_a_new_step_changes_the_dot():
    assert to_dot(only_part(*fan(3))) != to_dot(only_part(*fan(4)))


def test_a_node_has_its_id_its_label_and_its_stable_line():
    dot = to_dot(only_part(step("CallTool-1", tool="shop__lookup_order")))
    assert r'"step-CallTool-1" [label="lookup_order\nCallTool-1" id="step-CallTool-1"]' in dot


@pytest.mark.parametrize("text", HOSTILE_TEXTS)
def test_no_label_ends_its_statement_or_starts_another(text):
    dot = to_dot(only_part(step("CallTool-1", tool=text)))
    statements = [line for line in dot.splitlines() if line.startswith('\t"step-')]
    assert len(statements) == 1
    assert statements[0].endswith(' id="step-CallTool-1"]')
    assert dot.isprintable() or set(filter(lambda c: not c.isprintable(), dot)) == {"\n", "\t"}


def test_the_escaper_takes_entities_backslashes_and_html_for_text():
    assert escape(r"&amp; \N <b>") == r"&amp;amp; \\N <b>"


def test_the_escaper_shows_what_cannot_be_seen():
    assert escape("a\u202eb\x00\ud800") == "a⟨U+202E⟩b⟨U+0000⟩⟨U+D800⟩"


def test_two_lines_that_look_like_html_together_stay_text():
    node = only_node(step("it>", type="CallTool", tool="<b"))
    part = dataclasses.replace(only_part(step("a")), nodes=(node,))
    assert r'label="<b\nit>"' in to_dot(part)


def test_a_long_label_is_cut_so_that_one_sees_it():
    node = only_node(step("CallTool-1", tool="shop__" + "search_" * 10))
    assert first_line(node) == "search_search_search_sea…"


def test_a_fold_with_a_long_name_keeps_its_count():
    folded = only_part(*fan(12, tool="shop__" + "search_" * 10)).nodes[1]
    assert first_line(folded) == "search_search_search… ×12"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text", "plain text"),
        ("a\u202eb", "a⟨U+202E⟩b"),
        ("\ud800", "⟨U+D800⟩"),
        ("a\nb", "a⟨U+000A⟩b"),
        ("a\u00a0b", "a⟨U+00A0⟩b"),
        ("\U000e0041", "⟨U+E0041⟩"),
        ("訂單 é", "訂單 é"),
    ],
)
def test_what_cannot_be_seen_is_shown_by_its_code(text, shown):
    assert visible(text) == visible(visible(text)) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("abcdef", "abcdef"),
        ("abcdefg", "abcde…"),
        ("訂單查", "訂單查"),
        ("訂單查詢", "訂單…"),
        ("abc\u202ed", "abc…"),
        ("", ""),
    ],
)
def test_a_cut_counts_columns_and_never_splits_a_code(text, shown):
    assert shorten(text, 6) == shown
