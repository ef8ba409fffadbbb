"""What a message says, and what it keeps to itself."""

import email
import json

import pytest
from django.core import mail
from django.utils import timezone

from approvals_app.notify import outbox
from sessions_app.models import Credential
from tests.approvals_app.notify.conftest import channel

pytestmark = pytest.mark.django_db

SECRET = "a-secret-of-the-receiver"


def the_mail() -> tuple[str, str]:
    outbox.sweep()
    [message] = mail.outbox
    parsed = email.message_from_bytes(message.message().as_bytes())
    return str(message.subject), parsed.get_payload(decode=True).decode()


def test_a_mail_says_what_is_asked_by_whom_until_when_and_where_to_decide(news, settings):
    settings.TIME_ZONE = "Europe/Berlin"
    settings.DEXWEB_PUBLIC_URL = "https://dexweb.example.com/ops"
    news.deadline = timezone.datetime.fromisoformat("2026-07-01T12:00:00+00:00")
    channel("mail", email="desk@example.com")
    news.ask()
    _, text = the_mail()
    lines = text.splitlines()
    for line in (
        "Tool: shop__issue_refund",
        "Agent: refund-desk",
        "Session: A refund",
        "Risk: high",
        "Permission: refunds.approve",
        "Deadline: 2026-07-01 14:00 CEST (UTC+0200)",
    ):
        assert line in lines
    assert "https://dexweb.example.com/ops/approvals/apr-1/" in text
    assert "Nothing is decided by opening this address" in text
    assert "https://dexweb.example.com/ops/account/notifications/" in text


def test_links_are_right_below_a_path_prefix_whichever_thread_makes_them(news, settings):
    from django.urls import set_script_prefix

    settings.DEXWEB_PUBLIC_URL = "https://dexweb.example.com/ops"
    channel("mail", email="desk@example.com")
    news.ask()
    set_script_prefix("/ops/")
    try:
        _, text = the_mail()
    finally:
        set_script_prefix("/")
    assert "https://dexweb.example.com/ops/approvals/apr-1/" in text


def test_a_link_opens_a_page_and_decides_nothing(news, client, approver):
    interrupt = news.ask()
    client.force_login(approver)
    assert client.get("/approvals/apr-1/").status_code == 200
    interrupt.refresh_from_db()
    assert interrupt.state == "pending"


@pytest.mark.parametrize("kind", ["mail", "slack", "webhook"])
@pytest.mark.parametrize("chosen", [False, True])
def test_arguments_are_sent_only_where_the_channel_has_chosen_them(
    news, receiver, allowed, kind, chosen
):
    channel(
        kind,
        email="desk@example.com",
        url=receiver.url,
        secret=SECRET,
        include_arguments=chosen,
    )
    news.ask()
    outbox.sweep()
    sent = mail.outbox[0].body if kind == "mail" else receiver.posts[0][1].decode()
    assert ("A-1042" in sent) is chosen
    assert ("129.0" in sent) is chosen


def test_the_value_of_a_credential_is_in_no_message_even_with_arguments(news):
    Credential.objects.create(name="shop-key", value='pass"word-A-1042-x')
    channel("mail", email="desk@example.com", include_arguments=True)
    interrupt = news.ask()
    interrupt.args = json.dumps({"note": 'use pass"word-A-1042-x please'})
    interrupt.save()
    _, text = the_mail()
    assert "use [hidden] please" in text
    assert "A-1042-x" not in text


def test_a_title_cannot_hide_turn_or_imitate_in_any_message(news, receiver, allowed):
    news.session.title = "Pay \u202eslaib\u200b p\u0430ypal"
    news.session.save()
    channel("mail", email="desk@example.com")
    channel("webhook", url=receiver.url, secret=SECRET)
    channel("slack", url=receiver.url)
    news.ask()
    outbox.sweep()
    approval, chat = receiver.bodies()
    if "approval" not in approval:
        approval, chat = chat, approval
    for text in (mail.outbox[0].body, approval["approval"]["session_title"], chat["text"]):
        assert "[RIGHT-TO-LEFT OVERRIDE (U+202E)]" in text
        assert "[ZERO WIDTH SPACE (U+200B)]" in text
        assert "\u0430[CYRILLIC SMALL LETTER A (U+0430)]" in text
        assert "\u202e" not in text
    assert approval["approval"]["suspicious"] is True
    assert "Careful:" in mail.outbox[0].body
    assert "Careful:" in chat["text"]


def test_a_tools_name_cannot_add_a_header_to_a_mail(news):
    channel("mail", email="desk@example.com")
    news.ask(tool="shop__x\r\nBcc: eve@example.com")
    subject, text = the_mail()
    assert "\n" not in subject and "\r" not in subject
    parsed = email.message_from_bytes(mail.outbox[0].message().as_bytes())
    assert parsed["Bcc"] is None
    assert mail.outbox[0].recipients() == ["desk@example.com"]
    assert not any(line.startswith("Bcc:") for line in text.splitlines())


def test_a_title_of_many_lines_stays_on_one_and_a_long_one_says_what_was_cut(news):
    news.session.title = "Risk: none\nRisk: low\n" + "x" * 179 + "and the tail"
    news.session.title = news.session.title[:200]
    news.session.save()
    channel("mail", email="desk@example.com", include_arguments=True)
    interrupt = news.ask()
    interrupt.args = json.dumps({"note": "y" * 9000})
    interrupt.save()
    _, text = the_mail()
    assert "Session: Risk: none ⏎ Risk: low ⏎ xxx" in text
    assert [line for line in text.splitlines() if line.startswith("Risk:")] == ["Risk: high"]
    assert "more characters)" in text


def test_a_chats_title_can_call_nobody_and_link_nowhere(news, receiver, allowed):
    news.session.title = "<!channel> `x` <https://evil.example|safe>"
    news.session.save()
    channel("slack", url=receiver.url)
    news.ask()
    outbox.sweep()
    [body] = receiver.bodies()
    assert "Session: `&lt;!channel&gt; ˋxˋ &lt;https://evil.example|safe&gt;`" in body["text"]
