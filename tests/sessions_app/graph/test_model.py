import dataclasses
import sys
from datetime import UTC, datetime, timedelta

import pytest

from sessions_app.graph.model import GraphNode, GraphPart, as_list, build_parts, node_id
from tests.sessions_app.graph.build import (
    HOSTILE_TEXTS,
    fan,
    long_session,
    only_node,
    only_part,
    step,
)

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


def test_no_steps_make_no_parts():
    assert build_parts([]) == []


def test_nodes_are_steps_and_edges_say_what_scheduled_what_with_the_join():
    part = only_part(*fan(2))
    assert [node.step_ids for node in part.nodes] == [
        ("RunModel-1",),
        ("CallTool-1",),
        ("CallTool-2",),
        ("ResumeTurn-1",),
    ]
    assert part.edges == (
        ("step-RunModel-1", "step-CallTool-1"),
        ("step-RunModel-1", "step-CallTool-2"),
        ("step-CallTool-1", "step-ResumeTurn-1"),
        ("step-CallTool-2", "step-ResumeTurn-1"),
    )
    assert (part.key, part.title, part.step_count) == ("turn-1", "Turn 1", 4)


def test_each_turn_is_a_part_and_no_edge_leaves_it_but_in_words():
    first, second = build_parts(
        [
            step("RunModel-1", turn=1),
            step("AwaitMessage-2", turn=2, causes=("RunModel-1",)),
            step("RunModel-2", turn=2, causes=("AwaitMessage-2",)),
        ]
    )
    assert first.links == ("continues with AwaitMessage-2",)
    assert second.links == ("continues from RunModel-1",)
    assert second.edges == (("step-AwaitMessage-2", "step-RunModel-2"),)


def test_what_lies_before_the_first_turn_heads_its_part_under_an_unchanged_key():
    waiting = step("AwaitMessage-1", turn=0, status="waiting")
    (before,) = build_parts([waiting])
    (after,) = build_parts([waiting, step("RunModel-1", causes=("AwaitMessage-1",))])
    assert before.key == after.key == "turn-1"
    assert after.edges == (("step-AwaitMessage-1", "step-RunModel-1"),)


def test_a_cause_that_is_not_among_the_steps_becomes_words_and_no_node():
    part = only_part(step("RunModel-7", causes=("ResumeTurn-6",)))
    assert (len(part.nodes), part.edges) == (1, ())
    assert part.links == ("continues from ResumeTurn-6",)


def test_many_links_are_counted_instead_of_listed():
    part = only_part(step("ResumeTurn-1", causes=tuple(f"CallTool-{n}" for n in range(30))))
    assert len(part.links) == 9
    assert part.links[-1] == "and 22 more"


def test_a_step_that_names_itself_or_a_cause_twice_draws_no_extra_edge():
    part = only_part(
        step("RunModel-1", causes=("RunModel-1",)),
        step("CallTool-1", causes=("RunModel-1", "RunModel-1")),
    )
    assert part.edges == (("step-RunModel-1", "step-CallTool-1"),)


def test_of_two_rows_of_one_step_the_later_counts():
    node = only_node(step("RunModel-1", status="active"), step("RunModel-1", status="failed"))
    assert node.state == "bad"


def test_a_long_turn_is_cut_at_a_model_step_and_growing_moves_no_earlier_cut():
    parts = build_parts(long_session(1000))
    assert [part.key for part in parts[:3]] == ["turn-1", "turn-1-2", "turn-1-3"]
    assert [part.title for part in parts[:2]] == ["Turn 1, part 1", "Turn 1, part 2"]
    assert all(150 <= len(part.nodes) < 160 for part in parts[:-1])
    assert all(part.nodes[0].type == "RunModel" for part in parts)
    grown = build_parts(long_session(1100))
    assert [part.nodes for part in grown[:5]] == [part.nodes for part in parts[:5]]


def test_a_turn_without_model_steps_is_cut_all_the_same():
    parts = build_parts([step(f"CallTool-{n}", tool=f"shop__{n}") for n in range(700)])
    assert [len(part.nodes) for part in parts] == [300, 300, 100]


def test_five_thousand_steps_are_parts_of_bounded_size_that_hold_each_step_once():
    steps = long_session(5000, turns=9)
    parts = build_parts(steps)
    held = [step_id for part in parts for node in part.nodes for step_id in node.step_ids]
    assert sorted(held) == sorted(step.step_id for step in steps)
    assert len({part.key for part in parts}) == len(parts)
    assert max(len(part.nodes) for part in parts) < 160


def test_the_work_grows_in_step_with_the_number_of_steps():
    small, large = _lines_run(500), _lines_run(5000)
    assert large < 11 * small


def _lines_run(count: int) -> int:
    """Lines executed and ids compared while `count` Steps become parts and lists."""
    work = 0

    class CountedId(str):
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            nonlocal work
            work += 1
            return str.__eq__(self, other)

    def trace(frame, event, argument):
        nonlocal work
        work += event == "line"
        return trace

    steps = [
        dataclasses.replace(
            step, step_id=CountedId(step.step_id), causes=tuple(map(CountedId, step.causes))
        )
        for step in long_session(count)
    ]
    previous = sys.gettrace()
    sys.settrace(trace)
    try:
        for part in build_parts(steps):
            as_list(part)
    finally:
        sys.settrace(previous)
    return work


# Folding


def test_more_than_six_equal_siblings_are_one_node_that_lists_its_steps():
    part = only_part(*fan(8))
    _, folded, _ = part.nodes
    assert folded.label == "look ×8"
    assert folded.step_ids == tuple(f"CallTool-{n}" for n in range(1, 9))
    assert part.edges == (
        ("step-RunModel-1", "step-CallTool-1"),
        ("step-CallTool-1", "step-ResumeTurn-1"),
    )
    assert part.step_count == 10


def test_six_equal_siblings_stay_apart():
    assert len(only_part(*fan(6)).nodes) == 8


@pytest.mark.parametrize(
    "given",
    [
        {"status": "waiting"},
        {"status": "scheduled"},
        {"status": "active"},
        {"status": "failed"},
        {"outcome": "failed"},
        {"outcome": "outcome_unknown"},
    ],
)
def test_what_somebody_may_have_to_look_at_never_folds(given):
    assert len(only_part(*fan(20, **given)).nodes) == 22


@pytest.mark.parametrize(
    "given", [{"status": "planned"}, {"outcome": "rejected"}, {"status": "canceled"}]
)
def test_what_needs_nobody_folds_with_its_word(given):
    folded = only_part(*fan(20, **given)).nodes[1]
    assert len(folded.step_ids) == 20
    assert folded.sublabel == next(iter(given.values()))


def test_siblings_that_differ_in_tool_outcome_cause_or_child_do_not_fold_together():
    steps = fan(8)
    steps[1] = dataclasses.replace(steps[1], tool="shop__other")
    steps[2] = dataclasses.replace(steps[2], outcome="rejected")
    steps[3] = dataclasses.replace(steps[3], causes=("RunModel-0",))
    steps.append(step("RecordToolFailure-1", causes=("CallTool-4",)))
    assert len(only_part(*steps).nodes) == 11


def test_steps_without_a_cause_are_no_siblings():
    assert len(only_part(*(step(f"RunModel-{n}") for n in range(9))).nodes) == 9


def test_a_fold_says_how_long_the_longest_took():
    steps = [
        dataclasses.replace(s, started_at=NOON, ended_at=NOON + timedelta(milliseconds=10 * n))
        for n, s in enumerate(fan(9))
    ]
    assert only_part(*steps).nodes[1].sublabel == "up to 90 ms"


# States and words


@pytest.mark.parametrize(
    ("step_id", "given", "state", "sublabel"),
    [
        ("RunModel-1", {}, "ok", ""),
        ("RunModel-1", {"status": "scheduled"}, "run", "scheduled"),
        ("CallTool-1", {"status": "active", "attempt": 2}, "run", "running · attempt 2"),
        ("AwaitToolApproval-1", {"status": "waiting"}, "act", "waits for approval"),
        ("AwaitAnswer-1", {"status": "waiting"}, "act", "waits for an answer"),
        ("AwaitSpend-1", {"status": "waiting"}, "act", "waits for spend"),
        ("AwaitMessage-1", {"status": "waiting"}, "off", "waits for a message"),
        ("DurableWait-1", {"status": "waiting"}, "off", "waits for a timer"),
        ("CallTool-1", {"status": "waiting"}, "run", "waiting"),
        ("AwaitToolApproval-1", {"outcome": "approved"}, "ok", "approved"),
        ("AwaitToolApproval-1", {"outcome": "rejected"}, "off", "rejected"),
        ("AwaitToolApproval-1", {"outcome": "expired"}, "off", "expired"),
        ("CallTool-1", {"outcome": "invalidated"}, "off", "invalidated"),
        ("CallTool-1", {"outcome": "completed", "detail": "A-1"}, "ok", "A-1"),
        ("CallTool-1", {"status": "failed"}, "bad", "failed"),
        ("CallTool-1", {"outcome": "failed", "attempt": 3}, "bad", "failed · attempt 3"),
        ("CallSingleAttemptTool-1", {"outcome": "outcome_unknown"}, "odd", "outcome unknown"),
        (
            "CallTool-1",
            {"status": "planned", "detail": "write · once"},
            "off",
            "planned · write · once",
        ),
        ("CallTool-1", {"status": "canceled"}, "off", "canceled"),
        ("CallTool-1", {"status": "of_tomorrow"}, "off", "of_tomorrow"),
    ],
)
def test_a_step_shows_how_it_stands(step_id, given, state, sublabel):
    node = only_node(step(step_id, **given))
    assert (node.state, node.sublabel) == (state, sublabel)


@pytest.mark.parametrize("status", ["active", "waiting", "scheduled"])
def test_a_late_row_revives_no_step_whose_outcome_is_known(status):
    node = only_node(step("AwaitToolApproval-1", status=status, outcome="canceled"))
    assert (node.state, node.sublabel) == ("off", "canceled")


@pytest.mark.parametrize(
    ("span", "words"),
    [
        (timedelta(0), "0 ms"),
        (timedelta(milliseconds=38), "38 ms"),
        (timedelta(milliseconds=999.9), "1.0 s"),
        (timedelta(seconds=1.24), "1.2 s"),
        (timedelta(seconds=59.96), "1 min"),
        (timedelta(seconds=125), "2 min 5 s"),
        (timedelta(hours=3, minutes=20), "3 h 20 min"),
        (timedelta(days=4, hours=2), "4 d 2 h"),
        (timedelta(seconds=-3), "0 ms"),
    ],
)
def test_a_finished_step_says_how_long_it_took(span, words):
    node = only_node(step("RunModel-1", started_at=NOON, ended_at=NOON + span))
    assert node.sublabel == words


def test_a_long_detail_gives_way_to_the_duration():
    node = only_node(
        step("CallTool-1", detail="x" * 5000, started_at=NOON, ended_at=NOON + timedelta(seconds=2))
    )
    assert node.sublabel == "x" * 20 + "… · 2.0 s"


@pytest.mark.parametrize(
    ("by", "seconds", "shown"),
    [
        ("by demo", 78, "approved · by demo · 1 min"),
        ("by ada", 3.2, "approved · by ada · 3.2 s"),
        ("by demo", 7_400, "approved · by demo · 2 h"),
        ("by margarete", 78, "approved · by margarete"),
        ("by somebody-with-a-name", 78, "approved · by somebody-with-…"),
    ],
)
def test_who_decided_is_named_before_how_long_it_took(by, seconds, shown):
    ended_at = NOON + timedelta(seconds=seconds)
    node = only_node(
        step(
            "AwaitToolApproval-1", outcome="approved", detail=by, started_at=NOON, ended_at=ended_at
        )
    )
    assert node.sublabel == shown


def test_a_tool_step_is_named_for_its_tool_without_the_connection():
    node = only_node(step("CallTool-4", tool="shop__issue__refund"))
    assert (node.label, node.note) == ("issue__refund", "CallTool-4")


@pytest.mark.parametrize("tool", ["lookup", "shop__"])
def test_a_tool_name_without_a_connection_stays_whole(tool):
    assert only_node(step("CallTool-4", tool=tool)).label == tool


@pytest.mark.parametrize(
    ("states", "state_class"),
    [
        (("completed", "active", "waiting"), "s-act"),
        (("completed", "failed", "active"), "s-run"),
        (("completed", "failed"), "s-bad"),
        (("completed", "planned"), "s-ok"),
        (("canceled",), "s-off"),
    ],
)
def test_a_part_shows_what_weighs_most_in_it(states, state_class):
    steps = [step(f"AwaitAnswer-{n}", status=status) for n, status in enumerate(states)]
    assert only_part(*steps).state_class == state_class


# Ids


def test_ids_are_safe_and_differ_where_step_ids_differ():
    texts = [*HOSTILE_TEXTS, "RunModel-1", "a_b", "a_5f_b", "a.b", "", "x" * 300, "x" * 301]
    ids = [node_id(text) for text in texts]
    assert len(set(ids)) == len(texts)
    assert all(set(i) <= set(_ID_CHARACTERS) and len(i) < 1500 for i in ids)
    assert node_id("RunModel-1") == "step-RunModel-1"


_ID_CHARACTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"


# The list


def test_the_list_puts_what_a_model_step_asked_for_under_it():
    part = only_part(
        step("RunModel-1"),
        step("AwaitToolApproval-1", causes=("RunModel-1",)),
        step("CallTool-1", causes=("RunModel-1",)),
        step("CallSingleAttemptTool-1", causes=("AwaitToolApproval-1",)),
        step("ResumeTurn-1", causes=("CallTool-1", "CallSingleAttemptTool-1")),
        step("RunModel-2", causes=("ResumeTurn-1",)),
    )
    assert [(depth, node.step_ids[0]) for depth, node in as_list(part)] == [
        (0, "RunModel-1"),
        (1, "AwaitToolApproval-1"),
        (2, "CallSingleAttemptTool-1"),
        (1, "CallTool-1"),
        (0, "ResumeTurn-1"),
        (0, "RunModel-2"),
    ]


def test_the_list_holds_each_node_once_even_in_a_ring():
    ring = [step(f"CallTool-{n}", causes=(f"CallTool-{(n + 1) % 400}",)) for n in range(400)]
    for part in build_parts(ring):
        rows = as_list(part)
        assert sorted(node.id for _, node in rows) == sorted(node.id for node in part.nodes)
        assert max(depth for depth, _ in rows) <= 8


def test_a_list_of_a_part_made_by_hand_needs_no_edges():
    node = GraphNode("step-a", ("a",), "a", "", "ok")
    part = GraphPart("turn-1", 1, "Turn 1", (node,), (), (), 1, "s-ok")
    assert as_list(part) == [(0, node)]
