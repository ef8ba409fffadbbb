"""The approval pages: who sees and decides what, and what each refusal says."""

import uuid
from datetime import timedelta

import pytest
from django.utils import timezone

from approvals_app import decisions
from approvals_app.models import Decision, Interrupt
from dexweb.engine.errors import RpcLockConflict
from tests.sessions_app.api import build

pytestmark = pytest.mark.django_db
KEY = "refunds.approve"
HTMX = {"HX-Request": "true"}


@pytest.fixture
def ann():
    return build.person("ann", *build.LOOK, keys=(KEY,))


@pytest.fixture
def approver(client, ann):
    client.force_login(ann)
    return client


@pytest.fixture
def no_engine(settings):
    settings.DEXWEB_TEMPORAL_ADDRESS = "127.0.0.1:1"
    settings.DEXWEB_ENGINE_TIMEOUT = 1.0


def sent(row, verdict="approve", **changes):
    form = {
        "verdict": verdict,
        "revision": row.revision,
        "args_hash": row.args_hash,
        "reason": "",
        "request_id": str(uuid.uuid4()),
    }
    return {**form, **changes}


def decide(client, row, verdict="approve", htmx=True, **changes):
    headers = HTMX if htmx else {}
    return client.post(
        f"/approvals/{row.pk}/decide/", sent(row, verdict, **changes), headers=headers
    )


class HeldEngine:
    """An engine whose interrupts bob holds."""

    async def resolve_interrupt(self, session_id, rpc):
        raise RpcLockConflict(
            keys=["interrupt:i-1"], holder="bob", since=timezone.now().isoformat()
        )


def test_the_page_shows_every_argument_in_full_and_exactly(approver):
    long = "x" * 9000
    args = '{"n": 12345678901234567890, "price": 1.10, "deep": {"list": [null, "' + long + '"]}}'
    build.interrupt(build.session(), args=args)
    page = approver.get("/approvals/i-1/").content.decode()
    for part in ("12345678901234567890", "1.10", "null", long):
        assert part in page


def test_the_page_says_what_it_does_to_the_world_who_asked_and_what_happens_at_the_deadline(
    approver,
):
    session = build.session(started_by=build.person("carl"))
    row = build.interrupt(session, why="The order came late.")
    build.call(session, row.call_id, row.args)
    page = approver.get("/approvals/i-1/").content.decode()
    for part in (
        "Writes, runs once, never retried",
        "The order came late.",
        "carl",
        "RunModel-1",
        "left, then",
        "it does not run",
        row.args_hash,
        KEY,
    ):
        assert part in page


def test_hidden_characters_are_marked_and_warned_of(approver):
    build.interrupt(build.session(), args='{"to": "a\\u202eb"}')
    page = approver.get("/approvals/i-1/").content.decode()
    assert "Not everything here is what it looks like" in page
    assert "U+202E" in page
    assert "\u202e" not in page


def test_arguments_are_downloaded_byte_for_byte(approver):
    args = '{"to": "José", "amount": 1.10}'
    build.interrupt(build.session(), args=args)
    response = approver.get("/approvals/i-1/arguments/")
    assert response.content.decode() == args
    assert "attachment" in response["Content-Disposition"]


@pytest.mark.parametrize("path", ["", "panel/", "decide/", "arguments/"])
def test_reading_never_decides(approver, path):
    row = build.interrupt(build.session())
    assert approver.get(f"/approvals/i-1/{path}", sent(row)).status_code in (200, 302)
    assert not Decision.objects.exists()


def test_who_may_not_decide_sees_which_permission_is_needed_and_no_buttons(client):
    row = build.interrupt(build.session())
    client.force_login(build.person("vic", *build.LOOK))
    page = client.get("/approvals/i-1/").content.decode()
    assert KEY in page
    assert 'name="verdict"' not in page
    response = decide(client, row)
    assert response.status_code == 403
    assert 'data-code="not_allowed"' in response.content.decode()
    assert not Decision.objects.exists()


def test_who_may_not_see_approvals_gets_no_page(client):
    build.interrupt(build.session())
    client.force_login(build.person("nobody"))
    assert client.get("/approvals/").status_code == 403
    assert client.get("/approvals/i-1/").status_code == 403


def test_the_person_who_decides_is_the_one_signed_in_whatever_the_form_says(approver, no_engine):
    other = build.person("mallory", *build.LOOK, keys=("other.key",))
    row = build.interrupt(build.session())
    decide(approver, row, actor=other.pk, user=other.pk, decided_by="mallory")
    assert Decision.objects.get().actor.username == "ann"


def test_a_rejection_without_a_reason_is_asked_for_one(approver):
    response = decide(approver, build.interrupt(build.session()), "reject")
    assert response.status_code == 400
    page = response.content.decode()
    assert 'data-code="reason_required"' in page
    assert 'name="verdict"' in page


def test_while_the_engine_is_away_the_decision_is_kept_and_the_page_says_so(approver, no_engine):
    row = build.interrupt(build.session())
    response = decide(approver, row, "reject", reason="Not late at all")
    page = response.content.decode()
    assert response.status_code == 503
    assert response["Retry-After"]
    assert "will be delivered as soon as it is back" in page
    assert "Not late at all" in page
    assert 'name="verdict"' not in page
    later = approver.get("/approvals/i-1/").content.decode()
    assert "It is kept, and is delivered as soon as the engine is back" in later


def test_a_lock_conflict_names_the_holder_keeps_the_reason_and_offers_another_try(
    approver, monkeypatch
):
    monkeypatch.setattr(decisions, "SessionEngine", HeldEngine)
    response = decide(approver, build.interrupt(build.session()), reason="Because it was late")
    page = response.content.decode()
    assert response.status_code == 409
    for part in ("bob", "Since", "Because it was late", "Try again: approve", 'name="verdict"'):
        assert part in page


def test_a_decision_on_stale_arguments_shows_the_fresh_ones_and_asks_again(approver):
    row = build.interrupt(build.session(), args='{"amount": 99}', revision=2)
    response = decide(approver, row, revision=1, reason="typed before")
    page = response.content.decode()
    assert response.status_code == 409
    assert 'data-code="stale_interrupt"' in page
    assert "99" in page
    assert 'name="revision" value="2"' in page
    assert "typed before" in page
    assert not Decision.objects.exists()


def test_who_comes_second_is_told_who_decided_what_and_why(approver):
    row = build.interrupt(
        build.session(),
        state="rejected",
        decided_by_name="bob",
        decided_at=timezone.now(),
        reason="Too much money",
    )
    response = decide(approver, row)
    page = response.content.decode()
    assert response.status_code == 409
    for part in ('data-code="interrupt_already_decided"', "bob", "Too much money", "rejected"):
        assert part in page
    assert 'name="verdict"' not in page


def test_a_decision_after_the_deadline_is_told_what_happened(approver):
    row = build.interrupt(build.session(), state="expired", decided_at=timezone.now())
    response = decide(approver, row)
    page = response.content.decode()
    assert response.status_code == 409
    assert 'data-code="interrupt_expired"' in page
    assert "Nobody decided before the deadline" in page
    assert "rejected by" not in page


def test_past_its_deadline_a_pending_approval_has_no_buttons(approver):
    build.interrupt(build.session(), deadline=timezone.now() - timedelta(seconds=1))
    page = approver.get("/approvals/i-1/panel/").content.decode()
    assert "The deadline has passed" in page
    assert 'name="verdict"' not in page


@pytest.mark.parametrize(
    "change",
    [{"verdict": "maybe"}, {"revision": "x"}, {"args_hash": "short"}, {"request_id": ""}],
)
def test_a_damaged_form_decides_nothing_and_is_offered_anew(approver, change):
    row = build.interrupt(build.session())
    response = decide(approver, row, **{"reason": "kept words", **change})
    page = response.content.decode()
    assert response.status_code == 400
    assert 'data-code="invalid_decision"' in page
    assert "kept words" in page
    assert not Decision.objects.exists()


def test_without_scripts_a_refusal_is_a_whole_page(approver):
    response = decide(approver, build.interrupt(build.session()), "reject", htmx=False)
    assert response.status_code == 400
    assert "<html" in response.content.decode()


def test_a_decided_approval_shows_what_the_tool_did(approver):
    session = build.session()
    row = build.interrupt(
        session, state="approved", decided_by_name="bob", decided_at=timezone.now()
    )
    build.call(session, row.call_id, row.args, outcome="completed", result='{"refund": "R-1"}')
    page = approver.get("/approvals/i-1/").content.decode()
    for part in ("bob", "Completed", "R-1"):
        assert part in page


def test_an_approved_call_that_has_not_ended_keeps_the_panel_asking(approver):
    session = build.session()
    row = build.interrupt(session, state="approved", decided_at=timezone.now())
    call = build.call(session, row.call_id, row.args)
    before = approver.get("/approvals/i-1/panel/").content.decode()
    assert "data-poll" in before
    call.outcome = "completed"
    call.save()
    after = approver.get("/approvals/i-1/panel/").content.decode()
    assert "data-poll" not in after


def test_those_for_me_come_first_then_by_deadline(approver):
    session = build.session()
    now = timezone.now()
    for pk, minutes, permission in (
        ("others", 1, "mail.send"),
        ("later", 30, KEY),
        ("sooner", 20, KEY),
    ):
        deadline = now + timedelta(minutes=minutes)
        build.interrupt(session, pk, deadline=deadline, permission=permission)
    rows = approver.get("/approvals/").context["interrupts"]
    assert [row.pk for row in rows] == ["sooner", "later", "others"]


def test_paging_shows_each_once_also_with_equal_deadlines(approver):
    session = build.session()
    deadline = timezone.now() + timedelta(hours=1)
    for n in range(7):
        build.interrupt(session, f"i-{n}", deadline=deadline)
    seen, query = [], "limit=3"
    while query:
        context = approver.get(f"/approvals/?{query}").context
        seen += [row.pk for row in context["interrupts"]]
        query = context["next"]
    assert seen == [f"i-{n}" for n in range(7)]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", {"open"}),
        ("state=decided", {"over"}),
        ("state=all", {"open", "over"}),
        ("state=nonsense&cursor=%00&limit=-3", {"open"}),
    ],
)
def test_a_state_is_chosen_in_the_address_and_nonsense_breaks_nothing(approver, query, found):
    session = build.session()
    build.interrupt(session, "open")
    build.interrupt(session, "over", state="expired", decided_at=timezone.now())
    rows = approver.get(f"/approvals/?{query}").context["interrupts"]
    assert {row.pk for row in rows} == found


def test_rows_are_brought_up_to_date_by_id(approver):
    session = build.session()
    build.interrupt(session, "a")
    build.interrupt(session, "b", state="approved", decided_at=timezone.now())
    both = approver.get("/approvals/?rows=a,b,none").content.decode()
    assert both.count("data-row=") == 2
    matching = approver.get("/approvals/?rows=a,b&matching=1").content.decode()
    assert 'data-row="b"' not in matching


def test_the_number_of_queries_does_not_grow_with_the_inbox(
    approver, django_assert_max_num_queries
):
    session = build.session()
    for n in range(40):
        build.interrupt(session, f"i-{n}")
    with django_assert_max_num_queries(18):
        approver.get("/approvals/")


def test_an_empty_inbox_says_what_will_come(approver):
    assert "Nothing waits for a decision" in approver.get("/approvals/").content.decode()


def test_an_approval_that_is_not_there_is_not_found(approver):
    assert approver.get("/approvals/none/").status_code == 404
    assert approver.post("/approvals/none/decide/").status_code == 404
    assert not Interrupt.objects.exists()
