"""Rows as a conversation."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from sessions_app import conversation
from sessions_app.conversation import Rows, args_words, build, queue

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def turn(number=1, state="completed", detail=""):
    return SimpleNamespace(
        number=number, state=state, detail=detail, started_at=NOON, ended_at=None
    )


def message(text, turn=1, state="consumed", before_step=""):
    return SimpleNamespace(
        message_id=text,
        text=text,
        author_name="ann",
        state=state,
        turn=turn,
        before_step=before_step,
        edited_by_name="",
        created_at=NOON,
    )


def step(step_id, status="completed", turn=1, **fields):
    known = {"outcome": "", "attempt": 1, "call_id": "", "tool": "", "detail": "", "text": ""}
    times = {"next_attempt_at": None, "started_at": NOON, "ended_at": None, "model": "demo"}
    row = {"step_id": step_id, "type": step_id.partition("-")[0], "turn": turn, "status": status}
    return SimpleNamespace(**{**known, **times, **row, **fields})


def call(call_id, outcome="", **fields):
    known = {"model_step": "RunModel-1", "turn": 1, "tool": "shop__refund", "effect": "write"}
    texts = {
        "child_id": None,
        "args_start": '{"order": "A-1"}',
        "words_start": "",
        "outcome": outcome,
    }
    times = {"started_at": NOON, "ended_at": NOON + timedelta(milliseconds=40)}
    return SimpleNamespace(**{"call_id": call_id, **known, **texts, **times, **fields})


def spoken(steps, calls=(), partial=None):
    rows = Rows([turn()], [], steps, calls, partial or {})
    return build(rows)[0].items


def test_what_was_steered_in_stands_before_the_model_call_that_read_it_first():
    said = [message("first"), message("second", before_step="RunModel-2")]
    steps = [step("RunModel-1", text="one"), step("RunModel-2", text="two")]
    items = build(Rows([turn()], said, steps, []))[0].items
    assert [item.text for item in items] == ["first", "one", "second", "two"]
    assert [item.steered for item in items if item.kind == "said"] == [False, True]


def test_a_turn_is_its_messages_then_what_the_agent_said():
    rows = Rows([turn()], [message("hi")], [step("RunModel-1", text="hello")], [])
    items = build(rows)[0].items
    assert [(item.kind, item.text) for item in items] == [("said", "hi"), ("spoken", "hello")]


def test_queued_messages_stand_apart():
    waiting = [message("later", turn=None, state="queued"), message("gone", state="deleted")]
    assert [said.text for said in queue(waiting)] == ["later"]


def test_parts_of_parallel_calls_join_by_call_id():
    steps = [
        step("RunModel-1"),
        step("CallTool-1", call_id="a", outcome="completed"),
        step("CallTool-2", status="active", call_id="b"),
    ]
    first, second = spoken(steps, [call("a", "completed"), call("b")])[0].calls
    assert (first.step_id, first.state, first.time) == ("CallTool-1", "ok", "40 ms")
    assert (second.step_id, second.state, second.words) == ("CallTool-2", "run", "running")


@pytest.mark.parametrize(
    ("outcome", "steps", "state", "words"),
    [
        ("", [], "off", "planned"),
        ("", [("AwaitToolApproval-1", {"status": "waiting"})], "act", "waits for approval"),
        (
            "",
            [("CallTool-1", {"status": "scheduled", "next_attempt_at": NOON, "attempt": 2})],
            "run",
            "retrying, attempt 2",
        ),
        ("rejected", [("AwaitToolApproval-1", {})], "off", "rejected"),
        ("outcome_unknown", [("CallSingleAttemptTool-1", {})], "odd", "outcome unknown"),
        ("failed", [("CallTool-1", {"status": "failed"})], "bad", "failed"),
    ],
)
def test_a_call_says_how_it_stands(outcome, steps, state, words):
    rows = [step("RunModel-1"), *(step(name, call_id="a", **more) for name, more in steps)]
    shown = spoken(rows, [call("a", outcome)])[0].calls[0]
    assert (shown.state, shown.words) == (state, words)


def test_what_the_model_was_told_of_a_call_that_did_not_work_is_shown():
    steps = [step("RunModel-1")]
    failed = spoken(steps, [call("a", "failed", words_start="no such order")])[0].calls[0]
    done = spoken(steps, [call("a", "completed", words_start="the whole result")])[0].calls[0]
    assert (failed.why, done.why) == ("no such order", "")


def test_text_that_is_being_written_is_shown_as_far_as_it_came():
    item = spoken([step("RunModel-1", status="active")], partial={"RunModel-1": "Half a sen"})[0]
    assert (item.live, item.text) == (True, "Half a sen")


def test_a_failed_model_call_says_why():
    item = spoken([step("RunModel-1", status="failed", detail="overloaded")])[0]
    assert (item.live, item.state, item.error) == (False, "bad", "overloaded")


def test_a_model_call_that_a_budget_holds_says_so_and_does_not_look_as_if_it_were_thinking():
    item = spoken([step("RunModel-1", status="planned")])[0]
    assert (item.state, item.error) == ("off", "Waits for budget.")


def test_a_canceled_turn_says_so_with_its_reason():
    rows = Rows([turn(state="canceled", detail="wrong order")], [], [], [])
    assert build(rows)[0].note == "This turn was canceled: wrong order"


def test_a_failed_turn_does_not_repeat_what_its_model_call_says():
    failed = turn(state="failed", detail="overloaded")
    shown = build(
        Rows([failed], [], [step("RunModel-1", status="failed", detail="overloaded")], [])
    )
    assert shown[0].note == "This turn failed"


def test_long_turns_show_their_end_and_count_what_is_left_out():
    steps = [step(f"RunModel-{n}", text=str(n)) for n in range(1, 31)]
    shown = build(Rows([turn()], [], steps, []))[0]
    assert shown.items[-1].text == "30"
    assert shown.hidden == 30 - len(shown.items)
    whole = build(Rows([turn()], [], steps, []), whole=True)[0]
    assert (len(whole.items), whole.hidden) == (30, 0)


def test_a_long_text_is_cut_and_says_so():
    item = spoken([step("RunModel-1", text="x" * (conversation.TEXT_SHOWN + 1))])[0]
    assert (len(item.text), item.cut) == (conversation.TEXT_SHOWN, True)


def test_many_long_texts_do_not_fill_the_page():
    steps = [step(f"RunModel-{n}", text="x" * 6_000) for n in range(60)]
    shown = build(Rows([turn()], [], steps, []), whole=True)[0]
    assert sum(len(item.text) for item in shown.items) < 150_000
    assert len(shown.items[-1].text) == 6_000


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"order_id": "A-1", "amount": 184.90}', "A-1 · 184.90"),
        ('{"id": 9007199254740993}', "9007199254740993"),
        ('{"note": null, "lines": [1, 2]}', "[1, 2]"),
        ("{}", ""),
        ('{"cut": "off he', '{"cut": "off he'),
        ('{"a": "x\u202ey"}', "x⟨U+202E⟩y"),
    ],
)
def test_arguments_fit_on_a_line_and_keep_their_digits(text, words):
    assert args_words(text) == words
