"""The inbox: what comes first, what a filter lets through, and what each line says."""

from datetime import timedelta

import pytest
from django.utils import timezone

from approvals_app.models import Delegation
from tests.sessions_app.api import build

pytestmark = pytest.mark.django_db
KEY = "refunds.approve"


@pytest.fixture
def ann():
    return build.person("ann", *build.LOOK, keys=(KEY,))


@pytest.fixture
def inbox(client, ann):
    """The rows under a query of the address, by their ids."""
    client.force_login(ann)

    def rows(query=""):
        return [row.pk for row in client.get(f"/approvals/?{query}").context["interrupts"]]

    return rows


def in_minutes(minutes):
    return timezone.now() + timedelta(minutes=minutes)


def test_mine_come_first_then_the_riskiest_then_what_is_due_soonest(inbox):
    session = build.session()
    for pk, risk, minutes, key in (
        ("others", "high", 1, "mail.send"),
        ("low", "low", 2, KEY),
        ("high-later", "high", 30, KEY),
        ("medium", "medium", 3, KEY),
        ("high-soon", "high", 20, KEY),
    ):
        build.interrupt(session, pk, risk=risk, deadline=in_minutes(minutes), permission=key)
    assert inbox() == ["high-soon", "high-later", "medium", "low", "others"]


def test_a_risk_that_is_not_known_counts_as_the_highest(inbox):
    session = build.session()
    build.interrupt(session, "low", risk="low")
    build.interrupt(session, "strange", risk="odd")
    assert inbox() == ["strange", "low"]


def test_what_four_eyes_keep_from_me_is_not_mine(inbox, ann, client):
    bob = build.person("bob")
    eyes = {"four_eyes": True}
    for pk, starter, author in (("mine", bob, bob), ("started", ann, bob), ("wrote", bob, ann)):
        session = build.session(pk, started_by=starter)
        build.message(session, "Hello", author=author, turn=1)
        build.interrupt(session, f"i-{pk}", policy=eyes)
    unknown = build.session("unknown", started_by=None)
    build.interrupt(unknown, "i-unknown", policy=eyes)
    assert inbox("mine=1") == ["i-mine"]
    assert set(inbox()) == {"i-mine", "i-started", "i-wrote", "i-unknown"}
    build.interrupt(build.session("free", started_by=ann), "i-free", policy={})
    badge = '2<span class="sr"> wait for you</span>'
    assert badge in client.get("/approvals/").content.decode()
    mine = build.client_of(ann).get("/api/v1/approvals/?mine=true").json()["results"]
    assert {row["id"] for row in mine} == {"i-mine", "i-free"}


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("risk=high", {"refund"}),
        ("risk=low", {"mail", "note"}),
        ("tool=shop__send_email", {"mail"}),
        ("agent=mailer", {"mail"}),
        ("deadline=5m", {"mail"}),
        ("deadline=1h", {"mail", "refund"}),
        ("held=me", {"refund"}),
        ("held=others", {"mail"}),
        ("held=nobody", {"note"}),
        ("mine=1", {"refund", "note"}),
        ("q=A-1042", {"refund"}),
        ("q=post+office", {"mail"}),
        ("q=a-1042&risk=low", set()),
        ("risk=nonsense&held=%00", {"refund", "mail", "note"}),
    ],
)
def test_a_filter_stands_in_the_address(inbox, ann, query, found):
    refund, mails = (
        build.session(),
        build.session("m-1", title="Post office", agent=build.agent("mailer")),
    )
    bob, held = build.person("bob"), timezone.now() + timedelta(minutes=5)
    lapsed = timezone.now() - timedelta(seconds=1)
    build.interrupt(
        refund,
        "refund",
        '{"order": "A-1042"}',
        deadline=in_minutes(30),
        hold_by=ann,
        hold_until=held,
    )
    build.interrupt(
        mails,
        "mail",
        tool="shop__send_email",
        risk="low",
        permission="mail.send",
        deadline=in_minutes(4),
        hold_by=bob,
        hold_until=held,
    )
    build.interrupt(
        refund,
        "note",
        tool="shop__note",
        risk="low",
        deadline=in_minutes(60 * 48),
        hold_by=bob,
        hold_until=lapsed,
    )
    assert set(inbox(query)) == found


ENDS = ("approved", "rejected", "expired", "canceled", "superseded", "invalidated")


@pytest.mark.parametrize("state", ENDS)
def test_what_ended_stays_to_be_found_by_how_it_ended(inbox, client, state):
    session = build.session()
    build.interrupt(session, "open")
    for end in ENDS:
        build.interrupt(session, end, state=end, decided_at=timezone.now())
    assert inbox(f"state={state}") == [state]
    assert set(inbox("state=decided")) == set(ENDS)
    assert state.capitalize() in client.get(f"/approvals/?state={state}").content.decode()


def test_a_decided_one_is_found_by_who_decided_and_why(inbox, client):
    row = {"state": "rejected", "decided_at": timezone.now(), "decided_by_name": "carla"}
    build.interrupt(build.session(), "over", **row, reason="Too much money")
    assert inbox("state=decided&q=carla") == ["over"]
    assert inbox("state=decided&q=much+money") == ["over"]
    assert "by carla" in client.get("/approvals/?state=decided").content.decode()


def test_paging_keeps_the_filters_and_shows_each_once(client, inbox):
    session = build.session()
    for n in range(5):
        build.interrupt(session, f"i-{n}", risk=("high", "low")[n % 2])
    seen, query = [], "risk=high&limit=2"
    while query:
        context = client.get(f"/approvals/?{query}").context
        seen += [row.pk for row in context["interrupts"]]
        query = context["next"]
    assert seen == ["i-0", "i-2", "i-4"]


def test_quick_filters_say_how_many_they_find(client, inbox):
    session = build.session()
    build.interrupt(session, "a")
    build.interrupt(session, "b", risk="low", permission="mail.send", deadline=in_minutes(2))
    chips = {chip["words"]: chip["count"] for chip in client.get("/approvals/").context["chips"]}
    assert chips == {"For me": "1", "High risk": "1", "Within 5 min": "1", "Held by me": "0"}


def test_a_line_says_who_is_looking_at_it(client, inbox):
    until = timezone.now() + timedelta(minutes=5)
    bob = build.person("bob")
    build.interrupt(build.session(), hold_by=bob, hold_by_name="bob", hold_until=until)
    assert "bob is looking at it" in client.get("/approvals/").content.decode()


def test_a_line_says_for_whom_i_would_decide(client, inbox, ann):
    carl = build.person("carl", keys=("mail.send",))
    now = timezone.now()
    Delegation.objects.create(
        giver=carl,
        receiver=ann,
        key="mail.send",
        reason="Away",
        starts_at=now,
        ends_at=in_minutes(60),
    )
    build.interrupt(build.session(), permission="mail.send")
    page = client.get("/approvals/").content.decode()
    assert "for carl" in page
    assert "Your decision" in page


def test_twins_are_one_line_that_names_what_differs(client, inbox):
    session = build.session()
    for n in range(3):
        args = f'{{"order_id": "A-{n}", "amount": 5, "why": "late"}}'
        build.interrupt(session, f"i-{n}", args)
    page = client.get("/approvals/").content.decode()
    assert "3 × shop__issue_refund" in page
    assert "differs in order_id" in page
    assert "<mark>A-1</mark>" in page


def test_twins_that_others_decide_do_not_stand_among_mine(client, inbox):
    session = build.session()
    build.interrupt(session, "mine")
    build.interrupt(session, "others", permission="mail.send")
    assert all(group.alone for group in client.get("/approvals/").context["groups"])


def test_a_long_argument_is_cut_with_words_and_is_not_loaded_whole(client, inbox):
    build.interrupt(build.session(), args='{"text": "' + "x" * 60000 + '"}')
    response = client.get("/approvals/")
    assert "… and 59," in response.content.decode()
    assert len(response.content) < 30000


def test_hidden_characters_in_a_line_are_marked(client, inbox):
    build.interrupt(build.session(), args='{"to": "a\u202eb"}')
    page = client.get("/approvals/").content.decode()
    assert "U+202E" in page
    assert "\u202e" not in page


def test_only_what_i_may_decide_can_be_selected(client, inbox):
    session = build.session()
    build.interrupt(session, "mine")
    build.interrupt(session, "others", permission="mail.send")
    build.interrupt(session, "over", state="approved", decided_at=timezone.now())
    page = client.get("/approvals/?state=all").content.decode()
    assert page.count("data-pick>") == 1
