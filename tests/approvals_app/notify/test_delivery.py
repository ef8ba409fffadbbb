"""Messages on their way: signed, tried again, given up, and never to a private address."""

import hashlib
import hmac
import ipaddress
import re
import socket
import threading
import time
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings as project
from django.core import mail
from django.utils import timezone

from approvals_app.models import Notification, NotificationDelivery
from approvals_app.notify import outbox, webhooks
from approvals_app.notify.errors import AddressRefused, NotDelivered
from tests.approvals_app.notify.conftest import channel, deliveries

pytestmark = pytest.mark.django_db

SECRET = "a-secret-of-the-receiver"


def later(minutes: float) -> None:
    """Time passes for what waits."""
    back = timedelta(minutes=minutes)
    for row in NotificationDelivery.objects.filter(state="queued"):
        row.next_try_at -= back
        row.save(update_fields=["next_try_at"])


def the_delivery() -> NotificationDelivery:
    return NotificationDelivery.objects.get()


def documented_check():
    """The receiver's check of the documentation, with a memory of its own."""
    page = (Path(project.BASE_DIR) / "docs/notifications.md").read_text()
    code = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)[0]
    names: dict = {}
    exec(code, names)
    return names["accept"]


def test_a_signed_webhook_passes_the_documented_check_once(news, receiver, allowed):
    channel("webhook", url=receiver.url, secret=SECRET)
    news.ask()
    outbox.sweep()
    [(headers, body)] = receiver.posts
    accept = documented_check()
    content = accept(headers, body, SECRET)
    assert content["event"] == "ask"
    assert content["approval"]["id"] == "apr-1"
    assert content["delivery"] == headers["Dexweb-Delivery"] == str(the_delivery().pk)
    with pytest.raises(ValueError, match="seen before"):
        accept(headers, body, SECRET)


def signed_at(when: float, body: bytes) -> dict[str, str]:
    timestamp = str(int(when))
    mac = hmac.new(SECRET.encode(), timestamp.encode() + b"." + body, hashlib.sha256)
    return {"Dexweb-Timestamp": timestamp, "Dexweb-Signature": f"sha256={mac.hexdigest()}"}


@pytest.mark.parametrize(
    "what", ["old", "future", "changed", "another secret", "unsigned", "moved"]
)
def test_the_documented_check_refuses_what_is_old_or_not_ours(what):
    body = b'{"delivery": "d-1"}'
    age = {"old": -301, "future": 301}.get(what, 0)
    headers = signed_at(time.time() + age, body)
    if what == "moved":
        headers["Dexweb-Timestamp"] = str(int(headers["Dexweb-Timestamp"]) + 1)
    if what == "unsigned":
        headers.pop("Dexweb-Signature")
    sent = body + b" " if what == "changed" else body
    with pytest.raises(ValueError):
        documented_check()(headers, sent, "other" if what == "another secret" else SECRET)


def test_a_chat_gets_text_with_a_link_to_the_page_and_no_signature(news, receiver, allowed):
    channel("slack", url=receiver.url)
    news.ask()
    outbox.sweep()
    [body] = receiver.bodies()
    assert list(body) == ["text"]
    assert "`Approval asked for: shop__issue_refund`" in body["text"]
    assert body["text"].endswith("Open it in Dexweb: http://127.0.0.1:8000/approvals/apr-1/")
    assert "Dexweb-Signature" not in receiver.posts[0][0]


def test_what_fails_is_tried_eight_times_ever_more_slowly_and_then_given_up(
    news, receiver, allowed
):
    channel("webhook", url=receiver.url, secret=SECRET)
    receiver.status = 500
    news.ask()
    waits = []
    for _ in range(outbox.MAX_TRIES):
        outbox.sweep()
        row = the_delivery()
        if row.state == "queued":
            waits.append(round((row.next_try_at - timezone.now()).total_seconds() / 60))
            # Not yet due: another look doesn't try it again.
            assert outbox.sweep() == 0
        later(61)
    assert waits == [1, 2, 4, 8, 16, 32, 60]
    assert deliveries() == [("ask", "failed", 8)]
    assert the_delivery().problem.startswith("It answered 500: nono")
    assert len(receiver.posts) == 8
    # Every try is the same delivery, signed anew.
    assert len({headers["Dexweb-Delivery"] for headers, _ in receiver.posts}) == 1
    later(61)
    assert outbox.sweep() == 0


def test_after_a_failure_the_next_try_may_arrive(news, receiver, allowed):
    channel("webhook", url=receiver.url, secret=SECRET)
    receiver.status = 503
    news.ask()
    outbox.sweep()
    receiver.status = 204
    later(2)
    outbox.sweep()
    assert deliveries() == [("ask", "sent", 2)]
    assert the_delivery().problem == ""


def test_a_redirect_is_not_followed(news, receiver, allowed):
    channel("webhook", url=receiver.url, secret=SECRET)
    receiver.status, receiver.headers = 307, {"Location": receiver.url}
    news.ask()
    outbox.sweep()
    assert len(receiver.posts) == 1
    assert the_delivery().problem == "It answered 307, a redirect; none is followed."


def test_a_server_that_never_answers_is_left_in_time_and_the_others_are_told(
    news, receiver, allowed, monkeypatch
):
    monkeypatch.setattr(webhooks, "TIMEOUT", 0.3)
    channel("webhook", url=receiver.url, secret=SECRET)
    channel("mail", email="desk@example.com")
    receiver.silent = threading.Event()
    news.ask()
    began = time.monotonic()
    outbox.sweep()
    assert time.monotonic() - began < 5
    assert sorted(deliveries()) == [("ask", "queued", 1), ("ask", "sent", 1)]
    assert [message.to for message in mail.outbox] == [["desk@example.com"]]


def test_a_server_that_answers_drop_by_drop_is_left_in_time_too(settings, monkeypatch):
    settings.DEXWEB_WEBHOOK_ALLOW_PRIVATE = True
    monkeypatch.setattr(webhooks, "TIMEOUT", 0.5)
    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip():
            peer, _ = server.accept()
            with peer:
                peer.sendall(b"HTTP/1.1 200 OK\r\nX-Drop: ")
                while not ended.wait(0.1):
                    try:
                        peer.sendall(b"x")
                    except OSError:
                        return

        thread = threading.Thread(target=drip)
        thread.start()
        began = time.monotonic()
        with pytest.raises(NotDelivered, match="no answer within"):
            webhooks.post(f"http://127.0.0.1:{server.getsockname()[1]}/", b"{}", {})
        assert time.monotonic() - began < 3
        ended.set()
        thread.join()


def test_a_slow_notifier_uses_up_none_of_the_time_to_decide(news, receiver, allowed):
    """Asking and deciding are recorded without a word to anybody; the deadline is as it was."""
    channel("webhook", url=receiver.url, secret=SECRET)
    receiver.silent = threading.Event()
    interrupt = news.ask()
    assert receiver.posts == []
    assert interrupt.deadline == news.deadline
    news.close("rejected")
    assert receiver.posts == []
    interrupt.refresh_from_db()
    assert interrupt.state == "rejected"


def test_a_call_to_act_on_what_is_over_is_not_sent_to_people_but_counted_by_programs(
    news, receiver, allowed
):
    channel("webhook", url=receiver.url, secret=SECRET, events=["ask"])
    channel("mail", email="desk@example.com", events=["ask"])
    news.ask()
    news.close("expired")
    outbox.sweep()
    assert mail.outbox == []
    assert sorted(deliveries()) == [("ask", "dropped", 1), ("ask", "sent", 1)]
    assert receiver.bodies()[0]["event"] == "ask"


def test_two_workers_that_look_at_once_send_one_message(news, receiver, allowed):
    channel("webhook", url=receiver.url, secret=SECRET)
    news.ask()
    first, second = outbox.prepare(), outbox.prepare()
    assert first == second
    for delivery_id in first + second:
        outbox.deliver(delivery_id)
    assert len(receiver.posts) == 1


def test_what_a_dead_worker_had_claimed_is_taken_up_again(news, receiver, allowed):
    channel("webhook", url=receiver.url, secret=SECRET)
    news.ask()
    [delivery_id] = outbox.prepare()
    assert outbox._claim(delivery_id)
    assert outbox.sweep() == 0
    later(3)
    outbox.sweep()
    assert deliveries() == [("ask", "sent", 2)]


def test_a_tick_has_a_bound(news, receiver, allowed, monkeypatch):
    monkeypatch.setattr(outbox, "BATCH", 3)
    for number in range(5):
        channel("webhook", f"hook-{number}", url=receiver.url, secret=SECRET)
    news.ask()
    assert [outbox.sweep(), outbox.sweep(), outbox.sweep()] == [3, 2, 0]


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "0.0.0.0", "2130706433"])
def test_without_leave_nothing_is_sent_to_this_machine_by_whatever_name(news, receiver, host):
    url = receiver.url.replace("127.0.0.1", host)
    channel("webhook", url=url, secret=SECRET)
    news.ask()
    outbox.sweep()
    assert receiver.posts == []
    # A refusal is final: trying again changes nothing.
    assert deliveries() == [("ask", "failed", 1)]
    assert "not a public address" in the_delivery().problem


def test_a_name_with_one_private_address_among_public_ones_is_refused(monkeypatch):
    found = [(2, 1, 6, "", ("93.184.215.14", 443)), (2, 1, 6, "", ("10.0.0.7", 443))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **kwargs: found)
    with pytest.raises(AddressRefused, match=r"10\.0\.0\.7"):
        webhooks.resolved("two.example.com", 443)


@pytest.mark.parametrize(
    "number",
    [
        *("10.1.2.3", "172.16.0.1", "192.168.1.1", "127.8.8.8", "169.254.169.254", "100.64.0.1"),
        *("0.0.0.0", "224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1", "fc00::1", "fec0::1"),
        *("ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::"),
        *("::127.0.0.1", "2001:0:1::1", "2001:db8::1"),
    ],
)
def test_this_address_is_not_public(number):
    assert not webhooks.is_public(ipaddress.ip_address(number))


@pytest.mark.parametrize("number", ["93.184.215.14", "2606:4700::1111", "::ffff:1.1.1.1"])
def test_this_address_is_public(number):
    assert webhooks.is_public(ipaddress.ip_address(number))


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.com/",
        "https://",
        "/approvals/",
        "https://user:word@example.com/",
        "https://example.com/\r\nX: y",
        "https://example.com:99999/",
        "https://exämple.com/",
    ],
)
def test_this_is_no_address_to_post_to(url):
    with pytest.raises(AddressRefused):
        webhooks.checked(url)


def test_mail_carries_the_deliverys_id_so_that_a_second_copy_is_known(news, settings):
    settings.DEFAULT_FROM_EMAIL = "Dexweb <approvals@dexweb.example.com>"
    channel("mail", email="desk@example.com")
    news.ask()
    outbox.sweep()
    [message] = mail.outbox
    assert message.message()["Message-ID"] == f"<{the_delivery().pk}@dexweb.example.com>"
    assert message.message()["Auto-Submitted"] == "auto-generated"


def test_without_a_mail_server_a_channels_mail_says_so_and_people_are_promised_none(
    news, approver, settings
):
    settings.EMAIL_BACKEND = "django.core.mail.backends.dummy.EmailBackend"
    channel("mail", email="desk@example.com")
    news.ask()
    outbox.sweep()
    assert deliveries() == [("ask", "queued", 1)]
    assert the_delivery().problem == "No mail server is set up (DEXWEB_EMAIL_HOST)."


def test_mail_goes_through_whatever_backend_django_has(news, settings, tmp_path):
    settings.EMAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
    settings.EMAIL_FILE_PATH = str(tmp_path)
    channel("mail", email="desk@example.com")
    news.ask()
    outbox.sweep()
    [written] = tmp_path.iterdir()
    assert "Subject: [Dexweb] Approval asked for: shop__issue_refund" in written.read_text()


def test_one_that_cannot_be_addressed_holds_up_no_other(news, receiver, allowed):
    channel("webhook", url=receiver.url, secret=SECRET)
    for name in ("apr-1", "apr-2"):
        news.ask(name)
    broken = Notification.objects.get(interrupt="apr-1")
    broken.said = {}
    broken.save()
    outbox.sweep()
    assert [body["approval"]["id"] for body in receiver.bodies()] == ["apr-2"]


def test_what_is_old_is_forgotten(news, receiver, allowed):
    channel("webhook", url=receiver.url, secret=SECRET)
    news.ask()
    outbox.sweep()
    outbox.forget_old()
    row = the_delivery().notification
    row.at -= timedelta(days=31)
    row.save()
    outbox.forget_old()
    assert deliveries() == []
