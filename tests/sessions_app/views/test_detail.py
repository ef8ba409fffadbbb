"""The page of a session and its fragments: what they show, and what they cost."""

import json
import re
from datetime import timedelta

import pytest
from django.utils import timezone

from sessions_app.models import AgentEvent, ContextSummary, Session, Step, ToolCall, Turn
from tests.sessions_app.api import build

pytestmark = pytest.mark.django_db

QUERIES = 27


@pytest.fixture
def reader(client):
    client.force_login(build.person("ann", *build.LOOK, keys=("refunds.approve",)))
    return client


@pytest.fixture
def operator(client):
    client.force_login(build.person("olaf", *build.OPERATE))
    return client


def text_of(client, path, **query):
    response = client.get(path, query)
    assert response.status_code == 200
    return response.content.decode()


def page_of(client, of, **query):
    return text_of(client, f"/sessions/{of.pk}/", **query)


def turn(of, number=1, **fields):
    return Turn.objects.create(session=of, number=number, started_at=build.NOON, **fields)


def asked(of, pk="1", **fields):
    """A model call that asked for a refund, which waits for approval."""
    build.step(of, f"RunModel-{pk}", int(pk) * 10, text="I should refund this.")
    build.call(of, f"call-{pk}", '{"amount": 12.50}', model_step=f"RunModel-{pk}", **fields)
    build.step(
        of,
        f"AwaitToolApproval-{pk}",
        int(pk) * 10 + 1,
        status="waiting",
        causes=[f"RunModel-{pk}"],
        call_id=f"call-{pk}",
        tool="shop__issue_refund",
    )
    return build.interrupt(of, pk, step_id=f"AwaitToolApproval-{pk}", call_id=f"call-{pk}")


def long_session(turns, steps, events):
    """Turns of model calls with four tool calls each."""
    of = build.session("long", turn=turns)
    rows, calls, position = [], [], 0
    for number in range(1, turns + 1):
        turn(of, number, state="completed")
        build.message(of, f"Question {number}", turn=number, state="consumed")
        for n in range(steps):
            position += 1
            model = f"RunModel-{number}-{n}"
            rows.append(row(of, model, number, position, text="Some words. " * 40))
            for c in range(4):
                position += 1
                call_id = f"call-{number}-{n}-{c}"
                calls.append(call_row(of, call_id, model, number, c))
                rows.append(row(of, f"CallTool-{position}", number, position, call_id=call_id))
    Step.objects.bulk_create(rows)
    ToolCall.objects.bulk_create(calls)
    build.events(of, events)
    return of


def row(of, step_id, number, position, **fields):
    type = step_id.partition("-")[0]
    times = {"started_at": build.NOON, "ended_at": build.NOON + timedelta(seconds=position)}
    return Step(
        session=of,
        step_id=step_id,
        type=type,
        turn=number,
        position=position,
        status="completed",
        **times,
        **fields,
    )


def call_row(of, call_id, model_step, number, position):
    return ToolCall(
        session=of,
        call_id=call_id,
        model_step=model_step,
        turn=number,
        position=position,
        tool="shop__look_up",
        effect="read",
        args='{"order": "A-1"}',
        args_hash="0",
        outcome="completed",
        requested_at=build.NOON,
    )


def test_the_page_says_what_the_session_is_and_how_it_stands(reader):
    of = build.session(
        title="Late orders", phase="thinking", turn=3, spend="0.041", input_tokens=18_400
    )
    page = page_of(reader, of)
    for part in ("Late orders", "refund-desk-1", "Thinking", "$0.041", "18.4k in"):
        assert part in page


def test_a_price_that_is_not_known_is_said(reader):
    assert "unknown price" in page_of(reader, build.session(spend_unknown=True))


def test_a_wait_for_approval_says_how_long_is_left(reader):
    of = build.session(phase="waiting_approval", waiting=1)
    asked(of)
    assert re.search(r"Waits for approval, (9|10) min left", page_of(reader, of))


def test_an_idle_session_says_in_its_head_that_the_last_turn_failed(reader):
    of = build.session(turn=1)
    turn(of, state="failed")
    head = text_of(reader, f"/sessions/{of.pk}/head/")
    assert "Idle" in head
    assert "Turn failed" in head
    turn(of, 2, state="completed")
    Session.objects.update(turn=2)
    assert "Turn failed" not in text_of(reader, f"/sessions/{of.pk}/head/")


def test_the_legend_tells_apart_what_is_planned_canceled_waits_or_did_not_run(reader):
    of = build.session(turn=1)
    build.step(of, "RunModel-1", 1)
    build.step(of, "AwaitToolApproval-1", 2, outcome="rejected")
    build.step(of, "CallTool-1", 3, status="canceled")
    build.step(of, "CallTool-2", 4, status="planned")
    build.step(of, "AwaitMessage-2", 5, status="waiting")
    strip = reader.get(f"/sessions/{of.pk}/graph/").context["strip"]
    assert strip.legend == [
        ("ok", "done", 1),
        ("off", "did not run", 1),
        ("off", "canceled", 1),
        ("off", "planned", 1),
        ("off", "waits for a message", 1),
    ]


def test_an_ended_session_says_why_and_offers_no_stop(operator):
    of = build.session(status="failed", close_reason="The model is gone.", closed_at=timezone.now())
    page = page_of(operator, of)
    assert "The model is gone." in page
    assert "stop-dialog" not in page
    assert "takes no more messages" in page


def test_who_may_only_look_is_told_so_and_gets_no_buttons(reader):
    page = page_of(reader, build.session(phase="thinking"))
    assert "needs the permission to operate sessions" in page
    for part in ("stop-dialog", "cancel-turn", "composer-text"):
        assert part not in page


def test_who_may_operate_can_write_cancel_and_stop(operator):
    page = page_of(operator, build.session(phase="thinking"))
    for part in ("stop-dialog", "cancel-turn", "composer-text"):
        assert part in page


def test_without_permission_there_is_no_page(client):
    of = build.session()
    client.force_login(build.person("eve"))
    paths = ("", "head/", "graph/", "conversation/", "events/", "steps/x/", "steps/x/raw/")
    for path in paths:
        assert client.get(f"/sessions/{of.pk}/{path}").status_code == 403


def test_signed_out_there_is_only_the_sign_in_page(client):
    response = client.get(f"/sessions/{build.session().pk}/")
    assert response["Location"].startswith("/accounts/login/")


def test_an_unknown_session_is_not_found(reader):
    assert reader.get("/sessions/none/").status_code == 404


@pytest.mark.parametrize(
    "tab", ["graph", "conversation", "timeline", "events", "state", "nonsense"]
)
def test_every_tab_of_an_empty_session_says_something(reader, tab):
    page = page_of(reader, build.session(), tab=tab)
    assert "No step yet" in page or "No event yet" in page or "not begun yet" in page


def test_the_panel_begins_with_what_this_person_may_decide(reader):
    of = build.session(phase="waiting_approval", waiting=2)
    other = asked(of, "1")
    other.permission = "other.key"
    other.save()
    asked(of, "2")
    page = page_of(reader, of)
    assert 'id="approval-2"' in page
    assert 'id="approval-1"' not in page
    assert "2 wait for a person" in page


def test_the_panel_begins_with_what_failed_and_not_with_the_wait_for_spend_before_it(reader):
    of = build.session()
    build.step(of, "RunModel-1", 1, status="failed", outcome="failed", detail="The key is wrong.")
    build.step(of, "AwaitSpend-1", 2)
    assert "<h2>RunModel-1" in page_of(reader, of)


def test_the_newest_turn_is_drawn_and_earlier_ones_are_lines(reader):
    of = build.session()
    for number in (1, 2, 3):
        turn(of, number)
        build.message(of, f"Question {number}", turn=number, state="consumed")
        build.step(of, f"RunModel-{number}", number, turn=number)
    page = page_of(reader, of)
    assert 'id="step-RunModel-3"' in page
    assert 'id="step-RunModel-1"' not in page
    assert "Question 1" in page
    part = text_of(reader, f"/sessions/{of.pk}/graph/", part="turn-1")
    assert 'id="step-RunModel-1"' in part


def test_without_a_layout_program_the_steps_are_a_list_with_the_reason(reader, settings):
    settings.DEXWEB_DOT = "/nowhere/dot"
    of = build.session()
    turn(of)
    build.step(of, "RunModel-77", 1)
    page = page_of(reader, of)
    assert "Shown as a list" in page
    assert 'id="step-RunModel-77"' in page


@pytest.mark.parametrize("part", ["turn-9", "turn-1-7", "x", "turn-99999999999", "../x"])
def test_a_part_that_is_not_there_is_not_found(reader, part):
    of = build.session()
    build.step(of, "RunModel-1", 1)
    assert reader.get(f"/sessions/{of.pk}/graph/", {"part": part}).status_code == 404


def test_text_of_models_tools_and_people_is_never_markup(reader):
    evil = '<script>alert(1)</script><img src="x" onerror="alert(1)">'
    of = build.session(title=evil, phase="waiting_approval", waiting=1)
    turn(of)
    build.message(of, evil, message_id="m1", author_name=evil, turn=1, state="consumed")
    build.step(of, "RunModel-5", 5, text=evil, detail=evil, reasoning=evil, model=evil)
    args = json.dumps({"x": evil})
    build.call(of, "c", args, model_step="RunModel-5", tool=evil, outcome="failed", words=evil)
    build.step(of, "CallTool-1", 6, call_id="c", tool=evil, detail=evil, status="failed")
    AgentEvent.objects.create(
        session=of, seq=1, type="tool.failed", payload={"tool": evil, "words": evil}, at=build.NOON
    )
    for tab in ("graph", "conversation", "timeline", "events", "state"):
        page = page_of(reader, of, tab=tab)
        assert "<script>alert" not in page
        assert "<img" not in page
    for step_id in ("RunModel-5", "CallTool-1"):
        panel = text_of(reader, f"/sessions/{of.pk}/steps/{step_id}/")
        assert "<script>alert" not in panel
        assert "<img" not in panel


def test_a_step_shows_arguments_and_result_with_every_digit(reader):
    of = build.session()
    result = '{"id": 9007199254740993}'
    build.call(of, "c", '{"amount": 12.50}', outcome="completed", result=result, words=result)
    build.step(of, "CallTool-1", 1, call_id="c", tool="shop__issue_refund", outcome="completed")
    panel = text_of(reader, f"/sessions/{of.pk}/steps/CallTool-1/")
    for part in ("12.50", "9007199254740993", "issue_refund", "Completed"):
        assert part in panel


def test_a_huge_value_is_cut_on_the_page_and_whole_in_the_download(reader):
    of = build.session()
    build.call(of, "c", "{}", outcome="completed", result="x" * 500_000)
    build.step(of, "CallTool-1", 1, call_id="c", outcome="completed")
    panel = text_of(reader, f"/sessions/{of.pk}/steps/CallTool-1/")
    assert len(panel) < 40_000
    assert "500,000 characters" in panel
    raw = reader.get(f"/sessions/{of.pk}/steps/CallTool-1/raw/", {"what": "result"})
    assert raw.content == b"x" * 500_000
    assert raw["Content-Disposition"].startswith("attachment")
    assert raw["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("what", ["result", "password", "", "session_id"])
def test_only_known_values_that_were_recorded_can_be_downloaded(reader, what):
    of = build.session()
    build.step(of, "RunModel-1", 1)
    path = f"/sessions/{of.pk}/steps/RunModel-1/raw/"
    assert reader.get(path, {"what": what}).status_code == 404


def test_a_finished_model_step_says_what_it_decided(reader):
    of = build.session()
    asked(of)
    panel = text_of(reader, f"/sessions/{of.pk}/steps/RunModel-1/")
    assert "Asked for 1 tool call" in panel
    build.step(of, "RunModel-2", 50, text="Done.")
    assert "Answered" in text_of(reader, f"/sessions/{of.pk}/steps/RunModel-2/")


def test_a_step_between_two_tries_is_retrying_and_says_when(reader):
    of = build.session()
    build.step(
        of, "CallTool-1", 1, status="scheduled", attempt=2, next_attempt_at=build.NOON, tool="t"
    )
    panel = text_of(reader, f"/sessions/{of.pk}/steps/CallTool-1/")
    assert "Retrying, attempt 2" in panel
    assert "Next attempt" in panel


def test_a_step_that_is_not_there_is_said_to_be_missing(reader):
    of = build.session()
    response = reader.get(f"/sessions/{of.pk}/steps/RunModel-9/")
    assert response.status_code == 404
    assert 'id="side-body"' in response.content.decode()


def test_a_reply_that_is_being_written_is_shown_so_far(reader):
    of = build.session(phase="thinking", last_seq=3)
    turn(of, state="running")
    build.step(of, "RunModel-1", 1, status="active")
    for seq, words in ((1, "Half "), (2, "a sentence"), (4, " too new")):
        AgentEvent.objects.create(
            session=of,
            seq=seq,
            type="model.delta",
            step_id="RunModel-1",
            payload={"text": words},
            at=build.NOON,
        )
    page = text_of(reader, f"/sessions/{of.pk}/conversation/", since=1)
    assert "Half a sentence" in page
    # What is newer than the number that the fragment carries comes by the socket, and only there.
    assert "too new" not in page


def test_earlier_turns_are_fetched_by_number(reader):
    of = long_session(turns=12, steps=1, events=0)
    first = page_of(reader, of, tab="conversation")
    shown = re.findall(r'data-turn="(\d+)"', first)
    assert shown == ["8", "9", "10", "11", "12"]
    more = text_of(reader, f"/sessions/{of.pk}/conversation/", before=8)
    assert re.findall(r'data-turn="(\d+)"', more) == ["3", "4", "5", "6", "7"]
    assert 'id="queued"' not in more


def test_events_are_paged_by_number_newest_first(reader):
    of = build.session()
    build.events(of, 450)
    first = page_of(reader, of, tab="events")
    seqs = re.findall(r'data-seq="(\d+)"', first)[1:]
    assert (seqs[0], seqs[-1], len(seqs)) == ("450", "251", 200)
    older = text_of(reader, f"/sessions/{of.pk}/events/", before=251)
    assert re.findall(r'data-seq="(\d+)"', older)[0] == "250"
    newer = text_of(reader, f"/sessions/{of.pk}/events/", after=448)
    assert re.findall(r'data-seq="(\d+)"', newer) == ["450", "449"]


def test_events_can_be_filtered_by_kind(reader):
    of = build.session()
    build.events(of, 3)
    AgentEvent.objects.create(session=of, seq=4, type="tool.failed", payload={}, at=build.NOON)
    page = page_of(reader, of, tab="events", type="tool")
    assert re.findall(r'id="event-(\d+)"', page) == ["4"]


def test_numbers_that_are_no_longer_kept_are_named(reader):
    of = build.session(last_seq=9)
    for seq in (1, 2, 9):
        AgentEvent.objects.create(
            session=of, seq=seq, type="turn.started", payload={}, at=build.NOON
        )
    assert "3–8: live text, no longer kept" in page_of(reader, of, tab="events")


def test_a_large_event_is_cut_in_the_list_and_whole_in_the_download(reader):
    of = build.session(last_seq=1)
    AgentEvent.objects.create(
        session=of, seq=1, type="tool.failed", payload={"words": "y" * 90_000}, at=build.NOON
    )
    assert len(text_of(reader, f"/sessions/{of.pk}/events/")) < 4_000
    raw = reader.get(f"/sessions/{of.pk}/events/", {"seq": 1})
    assert json.loads(raw.content)["payload"] == {"words": "y" * 90_000}


@pytest.mark.parametrize(
    "query",
    [{"before": "x"}, {"before": "-1"}, {"before": "9" * 40}, {"after": "٣"}, {"type": "'"}],
)
def test_an_invalid_address_never_breaks_the_page(reader, query):
    of = build.session()
    build.events(of, 2)
    for path in ("", "events/", "conversation/", "graph/"):
        assert (
            reader.get(f"/sessions/{of.pk}/{path}", {"tab": "events", **query}).status_code == 200
        )


def test_the_timeline_scales_each_turn_by_itself(reader):
    of = build.session()
    build.step(of, "AwaitMessage-1", 1, started_at=build.NOON - timedelta(days=9))
    build.step(
        of, "RunModel-1", 2, started_at=build.NOON, ended_at=build.NOON + timedelta(seconds=2)
    )
    page = page_of(reader, of, tab="timeline")
    assert 'width="1000" height="10"' in page
    assert "UTC" in page


def test_the_state_tab_keeps_the_settings_of_the_turn(reader):
    of = build.session(labels={"customer": "C-204"}, run_id="run-7")
    turn(of, settings={"model": "demo:script", "temperature": 0.2})
    page = page_of(reader, of, tab="state")
    for part in ("C-204", "run-7", "demo:script", "Time limit", "64 KiB"):
        assert part in page


@pytest.mark.parametrize("tab", ["graph", "conversation", "timeline", "events", "state"])
def test_queries_do_not_grow_with_the_session(reader, django_assert_max_num_queries, tab):
    small = build.session("small")
    turn(small)
    build.step(small, "RunModel-1", 1)
    large = long_session(turns=9, steps=12, events=2_000)
    for of in (small, large):
        with django_assert_max_num_queries(QUERIES):
            page_of(reader, of, tab=tab)


@pytest.mark.parametrize(
    "path", ["head/", "graph/", "conversation/?since=1", "events/", "steps/RunModel-9-1/"]
)
def test_a_fragment_costs_few_queries(reader, django_assert_max_num_queries, path):
    long_session(turns=9, steps=12, events=500)
    with django_assert_max_num_queries(14):
        assert reader.get(f"/sessions/long/{path}").status_code == 200


def test_a_session_of_20_000_events_opens_small(reader):
    of = long_session(turns=40, steps=12, events=20_000)
    for tab in ("graph", "conversation", "timeline", "events", "state"):
        assert len(page_of(reader, of, tab=tab).encode()) < 300_000


def test_fragments_carry_the_number_that_they_were_rendered_at(reader):
    of = build.session(last_seq=41)
    turn(of)
    build.step(of, "RunModel-1", 1)
    for path in ("head/", "graph/", "conversation/?since=0", "steps/RunModel-1/"):
        assert 'data-version="41"' in text_of(reader, f"/sessions/{of.pk}/{path}")


def test_the_page_holds_no_inline_script_or_style(operator):
    of = build.session(phase="waiting_approval", waiting=1)
    asked(of)
    turn(of)
    for tab in ("graph", "conversation", "timeline", "events", "state"):
        page = page_of(operator, of, tab=tab)
        assert not re.search(r"<script(?![^>]*\bsrc=)[^>]*>", page)
        assert not re.search(r"<[^>]+\s(style|onclick|onload)=", page)


def test_a_summary_is_one_line_of_its_turn_that_unfolds(reader):
    of = build.session("s-1", turn=4)
    turn(of, 4)
    ContextSummary.objects.create(
        session=of,
        step_id="CompactContext-1",
        turn=4,
        last_turn=3,
        position=9,
        covers="turns 1–3",
        text="Order A-1042 <b>came</b> late.",
        tokens_before=900,
        tokens_after=200,
        created_at=build.NOON,
    )
    page = page_of(reader, of, tab="conversation")
    assert "<summary>Turns 1–3 were summarised for the model</summary>" in page
    assert "Order A-1042 &lt;b&gt;came&lt;/b&gt; late." in page


def test_the_state_tab_has_meters_with_their_limits_and_runs_that_lead_to_each_other(reader):
    of = build.session(
        "s-1",
        run_id="run-2",
        context_tokens=110_000,
        context_window=128_000,
        history_events=4_210,
        limits={"continue_events": 5_000, "of_a_later_version": 1},
    )
    for seq, type in enumerate(("session.started", "session.continued"), 1):
        AgentEvent.objects.create(
            session=of, seq=seq, type=type, payload={"run_id": f"run-{seq}"}, at=build.NOON
        )
    page = page_of(reader, of, tab="state")
    assert 'aria-label="Context: 110000 of 128000"' in page
    assert 'class="meter near"' in page
    assert 'aria-label="History: 4210 of 5000"' in page
    assert 'href="#run-run-1"' in page and 'href="#run-run-2"' in page
