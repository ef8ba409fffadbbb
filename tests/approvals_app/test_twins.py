"""Which calls are shown as twins, and what is said to differ between them."""

import json

from approvals_app.twins import CONSIDERED, LONGEST_TWIN, argument_paths, groups_of


def grouped(*arguments, same="refund"):
    rows = [(n, same, json.dumps(args)) for n, args in enumerate(arguments)]
    return [([twin.row for twin in group.twins], group.differs) for group in groups_of(rows)]


def refund(order, amount, currency="EUR", why="late"):
    return {"order_id": order, "amount": amount, "currency": currency, "why": why}


def test_calls_that_differ_little_are_one_group_that_says_in_what():
    assert grouped(refund("A-1", 10), refund("A-2", 12), refund("A-3", 10)) == [
        ([0, 1, 2], ["order_id", "amount"])
    ]


def test_a_group_stands_where_its_first_stood():
    found = grouped(refund("A-1", 1), {"note": "x"}, refund("A-2", 1))
    assert found == [([0, 2], ["order_id"]), ([1], [])]


def test_calls_that_differ_in_nearly_everything_are_no_twins():
    found = grouped(refund("A-1", 1), refund("B-2", 2, "USD", "broken"))
    assert [rows for rows, _ in found] == [[0], [1]]


def test_the_differences_of_a_whole_group_are_few_not_only_those_of_each_pair():
    found = grouped(
        {"a": 1, "b": 1, "c": 1},
        {"a": 2, "b": 1, "c": 1},
        {"a": 1, "b": 2, "c": 1},
        {"a": 1, "b": 1, "c": 2},
    )
    assert [rows for rows, _ in found] == [[0, 1, 2], [3]]


def test_another_tool_or_other_fields_are_never_twins():
    rows = [("a", "x", '{"n": 1}'), ("b", "y", '{"n": 1}'), ("c", "x", '{"m": 1}')]
    assert all(group.alone for group in groups_of(rows))


def test_a_text_and_a_number_that_read_alike_differ():
    assert grouped({"n": 1, "to": "x"}, {"n": "1", "to": "x"}) == [([0, 1], ["n"])]


def test_numbers_are_compared_digit_for_digit():
    rows = [("a", "", '{"n": 12345678901234567890}'), ("b", "", '{"n": 12345678901234567891}')]
    (group,) = groups_of(rows)
    assert [twin.differences[0][1].text for twin in group.twins] == [
        "12345678901234567890",
        "12345678901234567891",
    ]


def test_a_difference_deep_inside_is_named_by_its_path():
    lines = [{"lines": [{"sku": "a", "n": 1}, {"sku": "b", "n": n}], "to": "x"} for n in (1, 2)]
    assert grouped(*lines) == [([0, 1], ["lines.2.n"])]


def test_a_name_with_a_dot_is_not_taken_for_a_path():
    assert list(argument_paths('{"a.b": 1, "a": {"b": 2}}')) == ["“a.b”", "a", "a.b"]


def test_long_texts_that_differ_make_no_twins():
    assert len(grouped({"body": "x" * 300, "to": "a"}, {"body": "y" * 300, "to": "a"})) == 2


def test_what_is_too_long_or_comes_too_late_is_not_compared():
    long = {"body": "x" * LONGEST_TWIN}
    assert len(grouped(long, long)) == 2
    many = grouped(*[{"n": 1}] * (CONSIDERED + 5))
    assert len(many[0][0]) == CONSIDERED
    assert len(many) == 6


def test_thousands_of_unlike_calls_are_compared_with_a_few_each():
    found = grouped(*[{f"k{n % 7}": n, "a": n, "b": n, "c": n, "d": n} for n in range(CONSIDERED)])
    assert sum(len(rows) for rows, _ in found) == CONSIDERED
