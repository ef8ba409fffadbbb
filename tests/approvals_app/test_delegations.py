"""Handing a permission over: who may, for how long, what it changes at once, and what is kept of it."""

from datetime import timedelta

import pytest
from django.utils import timezone

from approvals_app.models import AuditEntry, Delegation
from approvals_app.rules import may_decide
from tests.sessions_app.api import build

pytestmark = pytest.mark.django_db
KEY = "refunds.approve"
PAGE = "/delegations/"


@pytest.fixture
def ann():
    return build.person("ann", *build.LOOK, keys=(KEY,))


@pytest.fixture
def bob():
    return build.person("bob", *build.LOOK)


@pytest.fixture
def holder(client, ann):
    client.force_login(ann)
    return client


def moment(**ahead):
    return (timezone.now() + timedelta(**ahead)).strftime("%Y-%m-%dT%H:%M")


def handed(**changes):
    form = {"key": KEY, "receiver": "bob", "reason": "On leave", "ends_at": moment(days=3)}
    return {**form, **changes}


def lent(giver, receiver, **fields):
    now = timezone.now()
    defaults = {"key": KEY, "reason": "Away", "starts_at": now, "ends_at": now + timedelta(days=1)}
    return Delegation.objects.create(giver=giver, receiver=receiver, **{**defaults, **fields})


def test_what_is_pending_moves_at_once(client, holder, bob):
    row = build.interrupt(build.session())
    assert not may_decide(bob, row)
    assert holder.post(PAGE, handed()).status_code == 302
    assert may_decide(bob, row)
    client.force_login(bob)
    page = client.get("/approvals/").content.decode()
    assert "Your decision" in page
    assert "for ann" in page


def test_both_see_what_was_given_and_why(client, holder, ann, bob):
    lent(ann, bob, reason="On leave until Monday")
    assert "On leave until Monday" in holder.get(PAGE).content.decode()
    client.force_login(bob)
    page = client.get(PAGE).content.decode()
    assert "On leave until Monday" in page
    assert "Give back" in page


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"receiver": "nobody-here"}, "no active person"),
        ({"receiver": "ann"}, "Choose somebody else"),
        ({"receiver": "blind"}, "may not see approvals"),
        ({"reason": " "}, "Say why"),
        ({"reason": "x" * 501}, "at most 500"),
        ({"ends_at": moment(days=31)}, "at most 30 days"),
        ({"ends_at": moment(days=-1)}, "must end after"),
        ({"ends_at": "soon"}, "ends_at"),
        ({"starts_at": moment(days=5)}, "must end after"),
        ({"starts_at": moment(days=400), "ends_at": moment(days=401)}, "within a year"),
    ],
)
def test_what_cannot_be_handed_over_so_is_refused_in_words_and_what_was_typed_is_kept(
    holder, bob, change, words
):
    build.person("blind")
    response = holder.post(PAGE, handed(**change))
    page = response.content.decode()
    assert response.status_code == 400
    assert words in page
    assert f'value="{change.get("receiver", "bob")}"' in page
    assert not Delegation.objects.exists()


def test_only_what_i_hold_myself_can_be_handed_over(client, ann, bob):
    carl = build.person("carl", *build.LOOK)
    lent(ann, bob)
    client.force_login(bob)
    assert "cannot be passed on" in client.get(PAGE).content.decode()
    response = client.post(PAGE, handed(receiver="carl"))
    assert response.status_code == 403
    assert 'data-code="key_not_held"' in response.content.decode()
    assert not Delegation.objects.filter(receiver=carl).exists()
    entry = AuditEntry.objects.get(action="delegation.refused")
    assert (entry.actor, entry.detail["code"]) == (bob, "key_not_held")


def test_a_key_that_nobody_made_cannot_be_handed_over_even_by_a_superuser(client, bob):
    root = build.person("root")
    root.is_superuser = True
    root.save()
    client.force_login(root)
    assert client.post(PAGE, handed(key="no.such.key")).status_code == 403


def test_the_same_cannot_be_handed_over_twice_for_the_same_time(holder, bob):
    holder.post(PAGE, handed())
    response = holder.post(PAGE, handed())
    assert response.status_code == 409
    assert Delegation.objects.count() == 1


def test_a_delegation_that_starts_later_counts_later(holder, bob):
    holder.post(PAGE, handed(starts_at=moment(days=1)))
    assert not may_decide(bob, build.interrupt(build.session()))
    assert "Planned" in holder.get(PAGE).content.decode()


def test_asking_to_revoke_revokes_nothing_before_it_is_confirmed(holder, ann, bob):
    row = lent(ann, bob)
    page = holder.get(f"{PAGE}{row.pk}/revoke/").content.decode()
    assert "Take it back?" in page
    row.refresh_from_db()
    assert row.revoked_at is None


@pytest.mark.parametrize("who", ["ann", "bob"])
def test_its_giver_takes_it_back_and_its_receiver_gives_it_back(client, ann, bob, who):
    row = lent(ann, bob)
    client.force_login({"ann": ann, "bob": bob}[who])
    assert client.post(f"{PAGE}{row.pk}/revoke/").status_code == 302
    assert not may_decide(bob, build.interrupt(build.session()))
    entry = AuditEntry.objects.get(action="delegation.revoked")
    assert (entry.actor_name, entry.via, entry.subject) == (who, "page", f"delegation:{row.pk}")


def test_others_neither_see_nor_revoke_it(client, ann, bob):
    row = lent(ann, bob)
    client.force_login(build.person("eve", *build.LOOK))
    assert "Away" not in client.get(PAGE).content.decode()
    assert client.get(f"{PAGE}{row.pk}/revoke/").status_code == 302
    assert client.post(f"{PAGE}{row.pk}/revoke/").status_code == 404
    assert may_decide(bob, build.interrupt(build.session()))


def test_what_is_over_cannot_be_revoked_again(holder, ann, bob):
    row = lent(ann, bob)
    holder.post(f"{PAGE}{row.pk}/revoke/")
    assert holder.post(f"{PAGE}{row.pk}/revoke/").status_code == 409
    assert AuditEntry.objects.filter(action="delegation.revoked").count() == 1


def test_a_giver_who_lost_the_permission_has_lent_nothing(holder, ann, bob):
    lent(ann, bob)
    ann.groups.clear()
    assert not may_decide(bob, build.interrupt(build.session()))
    assert "Without effect" in holder.get(PAGE).content.decode()


def test_giving_is_audited_with_who_whom_what_until_when_and_why(holder, ann, bob):
    holder.post(PAGE, handed())
    entry = AuditEntry.objects.get(action="delegation.given")
    assert (entry.actor, entry.via) == (ann, "page")
    detail = entry.detail
    assert (detail["giver"], detail["receiver"], detail["key"]) == ("ann", "bob", KEY)
    assert detail["reason"] == "On leave"


def test_who_may_not_see_approvals_has_no_delegations(client):
    client.force_login(build.person("nobody"))
    assert client.get(PAGE).status_code == 403
    assert client.post(PAGE, handed()).status_code == 403


def test_over_rest_one_hands_over_lists_and_revokes(ann, bob):
    api = build.client_of(ann)
    ends = (timezone.now() + timedelta(days=2)).isoformat()
    body = {"receiver": "bob", "key": KEY, "reason": "On leave", "ends_at": ends}
    made = api.post("/api/v1/delegations", body, format="json")
    assert made.status_code == 201
    assert (made.json()["giver"], made.json()["state"]) == ("ann", "in force")
    got = build.client_of(bob).get("/api/v1/delegations?direction=received").json()["results"]
    assert [row["id"] for row in got] == [made.json()["id"]]
    assert build.client_of(bob).get("/api/v1/delegations?direction=given").json()["results"] == []
    over = api.post(f"/api/v1/delegations/{made.json()['id']}/revoke", format="json")
    assert (over.status_code, over.json()["state"]) == (200, "revoked")
    assert set(AuditEntry.objects.values_list("via", flat=True)) == {"api:session"}


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"key": "mail.send"}, 403, "key_not_held"),
        ({"reason": ""}, 400, "invalid"),
        ({"receiver": "ann"}, 400, "invalid_delegation"),
        ({"giver": "carl"}, 400, "invalid"),
        ({"ends_at": (timezone.now() + timedelta(days=40)).isoformat()}, 400, "invalid_delegation"),
    ],
)
def test_over_rest_the_same_is_refused(ann, bob, change, status, code):
    ends = (timezone.now() + timedelta(days=2)).isoformat()
    body = {"receiver": "bob", "key": KEY, "reason": "On leave", "ends_at": ends, **change}
    response = build.client_of(ann).post("/api/v1/delegations", body, format="json")
    assert (response.status_code, response.json()["code"]) == (status, code)
    assert not Delegation.objects.exists()
