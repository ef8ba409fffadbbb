"""Several decided together: each shown in full, decided on its own, with its own result."""

import re
import uuid
from datetime import timedelta

import pytest
from django.utils import timezone

from approvals_app import decisions
from approvals_app.models import AuditEntry, Decision
from dexweb.engine.errors import EngineUnavailable, RpcLockConflict
from tests.sessions_app.api import build

pytestmark = pytest.mark.django_db
KEY = "refunds.approve"
BATCH = "/approvals/batch/"


@pytest.fixture
def ann():
    return build.person("ann", *build.LOOK, keys=(KEY,))


@pytest.fixture
def approver(client, ann):
    client.force_login(ann)
    return client


class Engine:
    """An engine that takes every decision but those on interrupts that bob holds."""

    taken: list = []
    held: set = set()
    away_after = 1000

    async def resolve_interrupt(self, session_id, rpc):
        if len(self.taken) >= type(self).away_after:
            raise EngineUnavailable()
        if rpc.interrupt_id in self.held:
            raise RpcLockConflict(keys=[rpc.interrupt_id], holder="bob", lock_kind="hold")
        self.taken.append(rpc)


@pytest.fixture
def engine(monkeypatch):
    class Fresh(Engine):
        taken: list = []
        held: set = set()

    monkeypatch.setattr(decisions, "SessionEngine", Fresh)
    return Fresh


def refunds(count, **fields):
    session = build.session()
    return [
        build.interrupt(
            session, f"i-{n}", f'{{"order_id": "A-{n}", "amount": 5, "why": "late"}}', **fields
        )
        for n in range(count)
    ]


def form(rows, verdict="approve", **changes):
    items = [f"{row.pk}:{row.revision}:{row.args_hash}" for row in rows]
    return {
        "batch_id": str(uuid.uuid4()),
        "verdict": verdict,
        "item": items,
        "reason": "",
        **changes,
    }


def outcomes(response):
    return {result.id: result.outcome for result in response.context["results"]}


def review(client, *rows):
    return client.get(BATCH, {"id": [row.pk for row in rows]})


def test_the_review_shows_every_item_in_full_with_the_differences_marked(approver):
    rows = refunds(2, why="The order came late.")
    page = review(approver, *rows).content.decode()
    for part in ("A-0", "A-1", "The order came late.", "left, then", "it does not run"):
        assert part in page
    assert page.count("differs from its twins") == 2
    assert page.count('name="item"') == 2


def test_the_review_shows_the_votes_so_far_and_what_mine_will_do(approver, ann):
    first, second, third = refunds(3, policy={"approve_n": 2})
    bob = build.person("bob")
    for row, person in ((first, bob), (third, ann)):
        row.votes.create(
            revision=1, verdict="approve", person=person, person_name=str(person), at=build.NOON
        )
    page = review(approver, first, second, third).content.decode()
    assert "<b>1 of 2 approvals</b>, by bob. Yours would be the last that is needed" in page
    assert "<b>0 of 2 approvals</b>. With yours, 1 more is needed before it runs." in page
    assert "One rejection ends it." in page
    assert "you voted on it already" in page


def test_looking_at_the_review_decides_nothing(approver):
    (row,) = refunds(1)
    approver.get(BATCH, {**form([row]), "id": row.pk})
    assert not Decision.objects.exists()


@pytest.mark.parametrize(
    ("fields", "because"),
    [
        ({"args": '{"to": "a\\u202eb"}'}, "hidden or look-alike characters"),
        ({"why": "pay\u200bpal"}, "hidden or look-alike characters"),
        ({"args": '{"body": "' + "x" * 601 + '"}'}, "a long value"),
        ({"state": "rejected", "decided_by_name": "bob"}, "it was rejected by bob meanwhile"),
        ({"permission": "mail.send"}, "needs the permission mail.send"),
        ({"deadline": timezone.now() - timedelta(seconds=1)}, "its deadline has passed"),
        ({"policy": {"four_eyes": True}}, "somebody else must decide it"),
        (
            {"hold_by_name": "bob", "hold_until": timezone.now() + timedelta(hours=1)},
            "bob is looking at it",
        ),
    ],
)
def test_what_needs_a_closer_look_is_left_out_with_words(approver, fields, because):
    row = build.interrupt(build.session(), **fields)
    page = review(approver, row).content.decode()
    assert because in page
    assert "These are decided one by one" in page
    assert 'name="item"' not in page


def test_more_than_fifty_are_not_decided_together(approver, engine):
    rows = refunds(51)
    assert "more than 50 at once" in review(approver, *rows).content.decode()
    assert approver.post(BATCH, form(rows)).status_code == 400
    assert not Decision.objects.exists()


def test_each_is_decided_on_its_own_and_one_refusal_stops_no_other(approver, engine):
    rows = refunds(3)
    engine.held = {"i-1"}
    response = approver.post(BATCH, form(rows, reason="All late"))
    assert outcomes(response) == {"i-0": "delivered", "i-1": "refused", "i-2": "delivered"}
    page = response.content.decode()
    assert "bob is working on this" in page
    assert {rpc.interrupt_id for rpc in engine.taken} == {"i-0", "i-2"}
    assert AuditEntry.objects.filter(action="decision.approve", via="page").count() == 2
    assert AuditEntry.objects.filter(action="decision.refused", via="page").count() == 1


def test_what_was_unticked_is_not_decided(approver, engine):
    rows = refunds(3)
    approver.post(BATCH, form(rows[:2]))
    assert {row.interrupt_id for row in Decision.objects.all()} == {"i-0", "i-1"}


def test_the_same_batch_again_decides_nothing_twice(approver, engine):
    sent = form(refunds(3))
    first, again = approver.post(BATCH, sent), approver.post(BATCH, sent)
    assert outcomes(first) == outcomes(again)
    assert len(engine.taken) == 3
    assert Decision.objects.count() == 3


def test_a_rejection_without_a_reason_decides_nothing_and_keeps_the_choice(approver, engine):
    response = approver.post(BATCH, form(refunds(2), "reject"))
    page = response.content.decode()
    assert response.status_code == 400
    assert 'data-code="reason_required"' in page
    assert page.count('name="item"') == 2
    assert not Decision.objects.exists()


def test_an_approval_needs_a_reason_where_one_policy_asks_for_it(approver, engine):
    rows = refunds(1)
    picky = build.interrupt(build.session("s-2"), "picky", policy={"reason_on_approve": True})
    assert "and to approve" in review(approver, *rows, picky).content.decode()
    assert approver.post(BATCH, form([*rows, picky])).status_code == 400
    assert not Decision.objects.exists()
    assert set(outcomes(approver.post(BATCH, form([*rows, picky], reason="Fine"))).values()) == {
        "delivered"
    }


def test_a_changed_one_is_refused_and_the_others_are_not(approver, engine):
    rows = refunds(2)
    sent = form(rows)
    rows[0].revision = 2
    rows[0].save()
    response = approver.post(BATCH, sent)
    assert outcomes(response) == {"i-0": "refused", "i-1": "delivered"}
    assert 'data-code="stale_interrupt"' in response.content.decode()


def test_a_forged_form_cannot_decide_what_must_be_opened_alone(approver, engine):
    row = build.interrupt(build.session(), args='{"to": "a\\u202eb"}')
    response = approver.post(BATCH, form([row]))
    assert outcomes(response) == {"i-1": "refused"}
    assert 'data-code="open_alone"' in response.content.decode()
    assert not Decision.objects.exists()


def test_what_i_may_not_decide_is_refused_in_a_batch_as_it_is_alone(approver, engine):
    row = build.interrupt(build.session(), permission="mail.send")
    response = approver.post(BATCH, form([row]))
    assert 'data-code="not_allowed"' in response.content.decode()
    assert not Decision.objects.exists()


def test_while_the_engine_is_away_the_first_is_kept_and_the_rest_is_not_tried(approver, engine):
    rows = refunds(3)
    engine.away_after = 1
    response = approver.post(BATCH, form(rows))
    assert outcomes(response) == {"i-0": "delivered", "i-1": "kept", "i-2": "not_sent"}
    assert "Send these again later" in response.content.decode()
    assert set(Decision.objects.values_list("interrupt", "state")) == {
        ("i-0", "delivered"),
        ("i-1", "delivery_pending"),
    }


@pytest.mark.parametrize(
    "change",
    [{"verdict": "maybe"}, {"batch_id": "x"}, {"item": []}, {"item": ["i-0:1:short"]}],
)
def test_a_damaged_form_decides_nothing(approver, engine, change):
    response = approver.post(BATCH, form(refunds(1), **change))
    assert response.status_code == 400
    assert not Decision.objects.exists()


def test_the_result_page_can_send_the_same_again(approver, engine):
    rows = refunds(2)
    engine.held = {"i-1"}
    sent = form(rows)
    page = approver.post(BATCH, sent).content.decode()
    assert sent["batch_id"] in page
    assert set(re.findall(r'name="item" value="([^"]+)"', page)) == set(sent["item"])


def test_who_may_not_see_approvals_has_no_batch(client):
    client.force_login(build.person("nobody"))
    assert client.get(BATCH).status_code == 403
    assert client.post(BATCH).status_code == 403


def post_api(user, rows, verdict="approve", key=None, **changes):
    items = [{"id": r.pk, "revision": r.revision, "args_hash": r.args_hash} for r in rows]
    headers = {"Idempotency-Key": key} if key else {}
    body = {"items": items, "verdict": verdict, **changes}
    return build.client_of(user).post(
        "/api/v1/approvals/batch", body, format="json", headers=headers
    )


def test_over_rest_each_has_its_own_answer(ann, engine):
    rows = refunds(2)
    engine.held = {"i-1"}
    response = post_api(ann, rows)
    first, second = response.json()["results"]
    assert response.status_code == 200
    assert first == {"id": "i-0", "ok": True, "outcome": "delivered"}
    assert (second["id"], second["ok"], second["code"]) == ("i-1", False, "rpc_lock_conflict")
    assert second["holder"] == "bob"
    assert second["retryable"] is False


def test_over_rest_the_same_key_repeats_the_answer(ann, engine):
    rows, key = refunds(2), str(uuid.uuid4())
    assert post_api(ann, rows, key=key).json() == post_api(ann, rows, key=key).json()
    assert len(engine.taken) == 2
    assert AuditEntry.objects.filter(action="decision.approve", via__startswith="api:").count() == 2


@pytest.mark.parametrize(
    ("verdict", "changes", "code"),
    [
        ("reject", {}, "reason_required"),
        ("maybe", {}, "invalid"),
        ("approve", {"actor": "bob"}, "invalid"),
        ("approve", {"items": []}, "invalid"),
    ],
)
def test_over_rest_a_wrong_request_decides_nothing(ann, engine, verdict, changes, code):
    response = post_api(ann, refunds(1), verdict, **changes)
    assert response.status_code == 400
    assert response.json()["code"] == code
    assert not Decision.objects.exists()
