"""Workers that sweep at the same moment send each message once."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connections

from approvals_app.notify import outbox, webhooks
from tests.approvals_app.notify.conftest import channel, deliveries

WORKERS = 4


def at_once(work):
    """What ``work`` gives in each of several threads that begin together."""
    ready = threading.Barrier(WORKERS)

    def one(_):
        ready.wait(10)
        try:
            return work()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(WORKERS) as threads:
        return list(threads.map(one, range(WORKERS)))


@pytest.mark.django_db(transaction=True)
def test_several_workers_at_once_address_and_send_each_message_once(
    news, receiver, allowed, monkeypatch
):
    # A busy machine is not what is tried.
    monkeypatch.setattr(webhooks, "TIMEOUT", 60.0)
    for number in range(3):
        channel("webhook", f"hook-{number}", url=receiver.url, secret="a-secret-of-theirs")
    for number in range(3):
        news.ask(f"apr-{number}")
    at_once(outbox.sweep)
    while outbox.sweep():
        pass
    assert deliveries() == [("ask", "sent", 1)] * 9
    ids = [body["delivery"] for body in receiver.bodies()]
    assert len(ids) == len(set(ids)) == 9
