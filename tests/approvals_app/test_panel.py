"""The panel of one approval: who is at it, who voted, who is kept out, and what is still folded."""

import json
import re
import uuid
from datetime import timedelta

import pytest
from django.utils import timezone

from approvals_app import holds
from approvals_app.models import AuditEntry, Decision, Delegation, Interrupt, Vote
from dexweb.engine.errors import RpcLockConflict
from tests.sessions_app.api import build

pytestmark = pytest.mark.django_db
KEY = "refunds.approve"
HTMX = {"HX-Request": "true"}
LONG = '{"body": "' + "word " * 400 + '"}'


@pytest.fixture
def ann():
    return build.person("ann", *build.LOOK, keys=(KEY,))


@pytest.fixture
def approver(client, ann):
    client.force_login(ann)
    return client


def panel(client):
    return client.get("/approvals/i-1/panel/").content.decode()


def act(client, name, htmx=True, **form):
    data = {"request_id": str(uuid.uuid4()), **form}
    return client.post(f"/approvals/i-1/{name}/", data, headers=HTMX if htmx else {})


def held(by, **fields):
    now = timezone.now()
    return build.interrupt(
        build.session(), hold_by=by, hold_by_name=by.username, hold_since=now,
        hold_until=now + timedelta(minutes=4), **fields,
    )  # fmt: skip


def vote(row, person, verdict="approve", revision=1):
    return Vote.objects.create(
        interrupt=row, revision=revision, verdict=verdict, person=person,
        person_name=person.username, at=timezone.now(),
    )  # fmt: skip


class TakenEngine:
    """An engine that keeps a hold, or a deadline, as the rows would tell of it."""

    async def hold_interrupt(self, session_id, rpc):
        until = timezone.now() + timedelta(seconds=rpc.seconds)
        rows = Interrupt.objects.filter(pk=rpc.interrupt_id)
        await rows.aupdate(
            hold_by=rpc.actor.id, hold_by_name=rpc.actor.name, hold_since=timezone.now(),
            hold_until=until,
        )  # fmt: skip

    async def release_interrupt(self, session_id, rpc):
        rows = Interrupt.objects.filter(pk=rpc.interrupt_id)
        await rows.aupdate(hold_by=None, hold_by_name="", hold_since=None, hold_until=None)

    async def extend_deadline(self, session_id, rpc):
        await Interrupt.objects.filter(pk=rpc.interrupt_id).aupdate(deadline=rpc.until)


class HeldEngine:
    """An engine whose interrupts bob holds."""

    async def hold_interrupt(self, session_id, rpc):
        raise RpcLockConflict(
            keys=["interrupt:i-1"],
            holder="bob",
            lock_kind="hold",
            since=timezone.now().isoformat(),
            until=(timezone.now() + timedelta(minutes=3)).isoformat(),
        )


@pytest.fixture
def engine(monkeypatch):
    monkeypatch.setattr(holds, "SessionEngine", TakenEngine)


def test_an_approver_says_that_they_are_on_it_and_lets_go(approver, engine):
    build.interrupt(build.session())
    assert "I’m on it" in panel(approver)
    assert "You are on it" in act(approver, "hold").content.decode()
    assert "I’m on it" in act(approver, "release").content.decode()


def test_everybody_else_sees_who_is_on_it_and_may_take_over(approver, engine):
    held(build.person("bob"))
    page = panel(approver)
    assert "<b>bob</b> is on it" in page
    assert "Take over" in page
    assert "You are on it" in act(approver, "take-over").content.decode()


def test_a_hold_that_ran_out_is_nobodys(approver):
    row = held(build.person("bob"))
    row.hold_until = timezone.now()
    row.save()
    assert "bob" not in panel(approver)


def test_who_may_not_decide_sees_the_holder_and_can_take_nothing(client, engine):
    held(build.person("bob"))
    client.force_login(build.person("vic", *build.LOOK))
    page = panel(client)
    assert "<b>bob</b> is on it" in page
    assert "Take over" not in page
    assert act(client, "take-over").status_code == 403
    assert Interrupt.objects.get().hold_by_name == "bob"


def test_a_hold_that_somebody_else_has_is_refused_with_their_name(approver, monkeypatch):
    monkeypatch.setattr(holds, "SessionEngine", HeldEngine)
    build.interrupt(build.session())
    response = act(approver, "hold")
    page = response.content.decode()
    assert response.status_code == 409
    for part in ('data-code="rpc_lock_conflict"', "bob", "Since", "Until"):
        assert part in page


def test_what_is_done_on_the_page_is_audited_as_done_there(approver, engine):
    build.interrupt(build.session())
    act(approver, "hold")
    assert AuditEntry.objects.filter(action="hold.taken", via="page").exists()


def test_a_deadline_is_moved_to_a_moment_that_was_offered_or_typed(approver, engine):
    row = build.interrupt(build.session())
    offered = row.deadline + timedelta(minutes=15)
    assert offered.isoformat() in panel(approver)
    act(approver, "extend", moment=offered.isoformat())
    row.refresh_from_db()
    assert row.deadline == offered
    assert act(approver, "extend", until="2099-01-01T12:00").status_code == 200
    row.refresh_from_db()
    assert row.deadline.isoformat() == "2099-01-01T12:00:00+00:00"


@pytest.mark.parametrize(
    ("until", "code"),
    [
        ("2020-01-01T00:00", "deadline_in_past"),
        ("soon", "invalid_decision"),
        ("", "invalid_decision"),
    ],
)
def test_a_deadline_moves_to_no_other_moment(approver, engine, until, code):
    build.interrupt(build.session())
    response = act(approver, "extend", until=until)
    assert response.status_code == 400
    assert f'data-code="{code}"' in response.content.decode()


@pytest.mark.parametrize("name", ["hold", "release", "take-over", "extend", "edit"])
def test_reading_an_address_changes_nothing(approver, engine, name):
    row = build.interrupt(build.session())
    assert approver.get(f"/approvals/i-1/{name}/").status_code == 302
    assert Interrupt.objects.get().hold_by is None
    assert Interrupt.objects.get().deadline == row.deadline


def test_without_scripts_holding_leads_back_to_the_page(approver, engine):
    build.interrupt(build.session())
    assert act(approver, "hold", htmx=False)["Location"] == "/approvals/i-1/"


def test_progress_says_who_voted_and_what_is_missing(approver):
    row = build.interrupt(build.session(), policy={"approve_n": 3, "deny_m": 2})
    vote(row, build.person("bob"))
    page = panel(approver)
    assert "1 of 3 approvals" in page
    assert "bob approved" in page
    assert "2 rejections end it; none so far" in page
    assert 'name="verdict"' in page


def test_a_person_who_voted_is_told_so_and_has_no_buttons(approver, ann):
    vote(build.interrupt(build.session(), policy={"approve_n": 2}), ann)
    page = panel(approver)
    assert "You approved this, and it counts once. 1 more approval needed" in page
    assert 'name="verdict"' not in page


def test_after_an_edit_earlier_votes_no_longer_count_and_one_votes_again(approver, ann):
    row = build.interrupt(build.session(), policy={"approve_n": 2}, revision=2)
    vote(row, ann, revision=1)
    page = panel(approver)
    assert "0 of 2 approvals" in page
    assert "no longer counts" in page
    assert 'name="verdict"' in page


def test_four_eyes_keeps_the_starter_out_in_words(approver, ann):
    session = build.session(started_by=ann)
    build.message(session, "go", author=ann, turn=1)
    build.interrupt(session, policy={"four_eyes": True})
    page = panel(approver)
    assert "second pair of eyes, and you started this session" in page
    assert 'name="verdict"' not in page


def test_four_eyes_are_a_quiet_note_until_somebody_tries(approver, ann):
    session = build.session(started_by=ann)
    build.message(session, "go", author=ann, turn=1)
    row = build.interrupt(session, policy={"four_eyes": True})
    page = panel(approver)
    assert '<div class="note off">' in page
    assert 'role="alert"' not in page
    tried = {"verdict": "approve", "revision": 1, "args_hash": row.args_hash}
    refused = act(approver, "decide", **tried).content.decode()
    assert 'role="alert" data-code="four_eyes"' in refused
    assert refused.count("second pair of eyes") == 1


def words_of(part):
    return " ".join(re.sub("<[^>]+>", " ", part).split())


def sheet(page):
    return page.partition('class="sure"')[2].partition("sure-actions")[0]


def test_the_second_step_of_high_risk_shows_every_argument_in_full_and_marked(approver):
    args = {"order": "A-1042", "note": "a\u202eb", "body": "word " * 400 + "end"}
    build.interrupt(build.session(), args=json.dumps(args))
    shown = sheet(panel(approver))
    assert "A-1042" in shown
    assert "word end" in shown
    assert 'class="char"' in shown
    assert "<details" not in shown


def test_the_second_step_shows_edited_arguments_as_they_will_run(approver):
    session = build.session()
    build.call(session, "call-i-1", '{"amount": 12.50}', schema={"type": "object"})
    row = build.interrupt(session, policy={"editable": True})
    named = {"revision": 1, "args_hash": row.args_hash}
    shown = words_of(sheet(act(approver, "edit", args='{"amount": 7}', **named).content.decode()))
    assert "as edited by you amount 7" in re.sub("All arguments of the call ", "", shown)
    assert "12.50" not in shown


def held_words(page):
    return page.partition("data-held")[2].partition("</p>")[0]


def test_at_the_buttons_it_says_who_else_is_on_it_and_what_happens(approver, ann):
    held(build.person("bob", *build.LOOK))
    words = held_words(panel(approver))
    assert "bob is on it: what you send is refused until" in words_of(words.partition(">")[2])
    assert not words.startswith(" hidden")
    Interrupt.objects.update(hold_by=ann, hold_by_name="ann")
    assert held_words(panel(approver)).startswith(" hidden")


def test_who_decides_for_somebody_sees_for_whom(client, ann):
    bea = build.person("bea", *build.LOOK)
    now = timezone.now()
    Delegation.objects.create(
        giver=ann, receiver=bea, key=KEY, reason="Holiday",
        starts_at=now - timedelta(hours=1), ends_at=now + timedelta(hours=1),
    )  # fmt: skip
    build.interrupt(build.session())
    client.force_login(bea)
    assert "You decide for <b>ann</b>" in panel(client)


def test_the_policy_says_who_is_asked_next_and_when_it_reminds(approver):
    steps = [{"permission": "refunds.lead", "deadline": 1200}]
    policy = {"reminders": [600, 120], "escalation": steps, "version": 4}
    row = build.interrupt(build.session(), at_deadline="escalate", policy=policy)
    page = panel(approver)
    for part in ("left, then refunds.lead is asked", "10 min and 2 min before", "version 4"):
        assert part in page
    row.level, row.permission = 1, KEY
    row.save()
    page = panel(approver)
    assert "left, then it does not run" in page
    assert "Nobody answered in time, so it was escalated" in page


def test_a_long_value_is_folded_and_says_its_size(approver):
    build.interrupt(build.session(), args=LONG)
    page = panel(approver)
    assert "2,000 characters" in page
    assert "I was shown it in full" in page
    assert "word " * 400 in page


@pytest.mark.parametrize(("verdict", "shown", "status"), [
    ("approve", {}, 400),
    ("approve", {"shown": "1"}, 503),
    ("reject", {}, 503),
])  # fmt: skip
def test_what_was_folded_is_not_approved_unless_it_was_shown(
    approver, settings, verdict, shown, status
):
    settings.DEXWEB_TEMPORAL_ADDRESS = "127.0.0.1:1"
    settings.DEXWEB_ENGINE_TIMEOUT = 1.0
    row = build.interrupt(build.session(), args=LONG)
    form = {"verdict": verdict, "revision": 1, "args_hash": row.args_hash, "reason": "kept words"}
    response = act(approver, "decide", **form, **shown)
    assert response.status_code == status
    if status == 400:
        page = response.content.decode()
        assert 'data-code="not_shown_in_full"' in page
        assert "kept words" in page
        assert not Decision.objects.exists()


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("expired", "Nobody decided before the deadline"),
        ("rejected", "<b>bob</b> rejected it"),
        ("canceled", "canceled before anybody decided"),
        ("superseded", "It was withdrawn undecided"),
        ("invalidated", "refused when it was to run"),
    ],
)
def test_each_way_to_end_has_its_own_words(approver, state, words):
    by = "bob" if state == "rejected" else ""
    build.interrupt(build.session(), state=state, decided_at=timezone.now(), decided_by_name=by)
    assert words in panel(approver)


def test_what_ran_because_nobody_objected_is_not_said_to_be_approved_by_anybody(approver):
    build.interrupt(build.session(), state="approved", decided_at=timezone.now())
    assert "Nobody objected before the deadline" in panel(approver)
