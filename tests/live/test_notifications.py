"""A real worker tells a real server about a real approval, and the server decides nothing."""

import threading

import pytest

from approvals_app.models import NotificationDelivery
from tests.approvals_app.notify.conftest import channel, receiver  # noqa: F401 (a fixture)
from tests.live.conftest import Live, until

REFUND = {"order_id": "A-1042", "amount": 20, "currency": "EUR", "reason": "late"}


@pytest.fixture
def desk(live: Live) -> Live:
    live.agent(
        [
            {"text": "I'll refund it.", "calls": [{"tool": "shop__issue_refund", "args": REFUND}]},
            {"text": "That is all I can do."},
        ]
    )
    live.worker()
    return live


def test_a_worker_tells_what_is_asked_and_what_was_decided(desk: Live, receiver) -> None:  # noqa: F811
    ann = desk.person("ann", "refunds.approve")
    channel("webhook", url=receiver.url, secret="a-secret-of-the-receiver")
    interrupt = desk.ask(desk.start(ann))
    until(lambda: receiver.posts, "the question")
    desk.decide(ann, interrupt, "reject")
    until(lambda: len(receiver.posts) == 2, "the answer")
    asked, decided = receiver.bodies()
    assert (asked["event"], asked["approval"]["state"]) == ("ask", "pending")
    assert (decided["event"], decided["text"]) == ("decide", "Rejected by ann: shop__issue_refund")
    until(lambda: NotificationDelivery.objects.filter(state="sent").count() == 2)


def test_a_server_that_keeps_silent_delays_no_decision(desk: Live, receiver) -> None:  # noqa: F811

    receiver.silent = threading.Event()
    ann = desk.person("ann", "refunds.approve")
    for number in range(6):
        channel("webhook", f"hook-{number}", url=receiver.url, secret="a-secret-of-the-receiver")
    session = desk.start(ann)
    interrupt = desk.ask(session)
    until(lambda: len(receiver.posts) >= 4, "four that wait for an answer")
    desk.decide(ann, interrupt)
    until(lambda: desk.call(session, "issue_refund").outcome, "the call to run", patience=4)
    assert len(desk.ledger("refunds")) == 1
