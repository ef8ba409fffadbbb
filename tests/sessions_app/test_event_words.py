"""Events in words."""

import pytest

from sessions_app.detail.event_words import state_of_event, words_of


@pytest.mark.parametrize(
    ("type", "payload", "words"),
    [
        (
            "step.changed",
            {"tool": "shop__refund", "status": "active", "attempt": 2},
            "refund: active, attempt 2",
        ),
        (
            "step.changed",
            {"tool": "", "status": "completed", "outcome": "outcome_unknown", "detail": "lost"},
            "outcome unknown — lost",
        ),
        (
            "tool.requested",
            {"tool": "shop__refund", "effect": "write", "needs_approval": True},
            "refund (write), waits for approval first",
        ),
        (
            "model.completed",
            {"calls": [], "input_tokens": 1200, "output_tokens": 7, "cost": "0.01"},
            "answered · 1,200 in, 7 out · $0.01",
        ),
        (
            "model.completed",
            {"calls": [{"tool": "shop__refund"}], "cost": None},
            "asked for refund · ? in, ? out · price unknown",
        ),
        (
            "approval.decided",
            {"verdict": "rejected", "by": "ann", "reason": "too much"},
            "rejected by ann — too much",
        ),
        ("approval.expired", {}, "nobody answered before the deadline"),
        ("message.queued", {"author": "ann", "text": "Hello\nthere"}, "ann: Hello there"),
        ("something.new", {"x": 1}, ""),
    ],
)
def test_an_event_is_told_in_words(type, payload, words):
    assert words_of(type, payload) == words


def test_hidden_characters_of_a_payload_are_shown():
    assert "⟨U+202E⟩" in words_of("tool.failed", {"tool": "t", "words": "a\u202eb"})


def test_a_request_for_a_tool_asks_nobody_but_one_for_approval_does():
    assert state_of_event("tool.requested") == "off"
    assert state_of_event("approval.requested") == "act"
    assert state_of_event("tool.outcome_unknown") == "odd"
