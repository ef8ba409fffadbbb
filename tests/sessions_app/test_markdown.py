"""Markdown of models and people: what becomes markup, and what stays text."""

import pytest

from sessions_app.markdown import to_html


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        '<img src=x onerror="alert(1)">',
        "[click](javascript:alert(1))",
        "[click](data:text/html;base64,PHNjcmlwdD4=)",
        "![x](https://evil.example/pixel.png)",
        '<a href="https://x" style="position:fixed">x</a>',
        "<iframe src=https://evil.example></iframe>",
    ],
)
def test_nothing_that_runs_loads_or_dresses_itself_gets_through(text):
    html = to_html(text)
    for tag in ("<script", "<img", "<iframe", "<a style", 'href="javascript', 'href="data'):
        assert tag not in html


def test_what_people_write_in_markdown_is_drawn():
    html = to_html("**bold** and `code`\n\n- one\n- two\n\n|a|b|\n|-|-|\n|1|2|")
    for part in ("<strong>bold</strong>", "<code>code</code>", "<li>one</li>", "<td>2</td>"):
        assert part in html


def test_a_link_leaves_without_telling_where_from():
    html = to_html("[policy](https://example.com/p)")
    assert 'href="https://example.com/p"' in html
    assert 'rel="noopener noreferrer nofollow"' in html


def test_characters_that_turn_the_text_round_are_shown():
    assert "⟨U+202E⟩" in to_html("pay \u202e001 EUR")


def test_a_fixed_space_between_number_and_unit_is_no_trick():
    assert to_html("10\u202f% of 5\u00a0EUR") == "<p>10 % of 5 EUR</p>\n"


def test_code_keeps_its_lines_and_tabs():
    assert "if x:\n\ty()" in to_html("```\nif x:\n\ty()\n```")


def test_deep_nesting_stays_cheap():
    assert len(to_html(">" * 5_000 + "x")) < 30_000
