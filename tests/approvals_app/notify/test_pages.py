"""A person's own page of notifications, and the admin's pages of channels and deliveries."""

import pytest
from django.contrib.auth.models import User

from approvals_app.models import (
    AuditEntry,
    NotificationChannel,
    NotificationDelivery,
    NotificationPreference,
    PermissionKey,
)
from approvals_app.notify import outbox
from tests.approvals_app.notify.conftest import KEY, channel
from tests.sessions_app.api import build

pytestmark = pytest.mark.django_db

PAGE = "/account/notifications/"
ADMIN = "/admin/approvals_app/notificationchannel/"
HOOK = "https://hooks.example.com/services/T0/B0/very-secret-path"
SECRET = "a-secret-of-the-receiver"


@pytest.fixture
def ann(client):
    user = build.person("ann", *build.LOOK)
    client.force_login(user)
    return user


@pytest.fixture
def root(client):
    user = User.objects.create_superuser("root")
    client.force_login(user)
    return user


def wish(user):
    return NotificationPreference.objects.filter(user=user).values_list("mail", "events").first()


def test_nobody_gets_mail_before_asking_for_it(client, ann):
    page = client.get(PAGE)
    assert page.status_code == 200
    assert b'name="mail" checked' not in page.content
    assert page.content.count(b" checked") == 4
    assert wish(ann) is None


def test_a_person_chooses_what_they_are_told(client, ann):
    answer = client.post(PAGE, {"mail": "on", "events": ["ask", "expire"]}, follow=True)
    assert b"Saved." in answer.content
    assert wish(ann) == (True, ["ask", "expire"])
    client.post(PAGE, {"events": ["ask"]})
    assert wish(ann) == (False, ["ask"])


def test_another_choice_is_audited_before_and_after_and_the_same_one_is_not(client, ann):
    for _ in range(2):
        client.post(PAGE, {"mail": "on", "events": ["ask", "expire"]})
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.actor, entry.subject) == (
        "notificationpreference.changed",
        ann,
        "user:ann",
    )
    assert entry.detail["changes"]["mail"] == {"before": False, "after": True}
    assert entry.detail["changes"]["events"]["after"] == ["ask", "expire"]


@pytest.mark.parametrize("events", [[], ["nonsense"]])
def test_a_choice_that_makes_no_sense_is_refused_with_words(client, ann, events):
    answer = client.post(PAGE, {"mail": "on", "events": events})
    assert answer.status_code == 400
    assert b'role="alert"' in answer.content
    assert wish(ann) is None


def test_a_person_changes_nobodys_choice_but_their_own(client, ann):
    bob = build.person("bob", *build.LOOK)
    client.post(PAGE, {"mail": "on", "events": ["ask"], "user": bob.pk})
    assert wish(bob) is None
    assert wish(ann) == (True, ["ask"])


def test_the_page_says_when_no_mail_can_come(client, ann, settings):
    settings.EMAIL_BACKEND = "django.core.mail.backends.dummy.EmailBackend"
    text = client.get(PAGE).content.decode()
    assert "This Dexweb has no mail server yet" in text
    assert "Your account has no e-mail address" in text


def form(**fields):
    key = PermissionKey.objects.get_or_create(key=KEY)[0]
    return {
        "name": "desk",
        "kind": "webhook",
        "keys": [key.pk],
        "events": ["ask", "expire"],
        "enabled": "on",
        "new_url": HOOK,
        "new_secret": SECRET,
        **fields,
    }


def test_a_channels_address_and_secret_go_in_and_never_come_out(client, root):
    assert client.post(f"{ADMIN}add/", form()).status_code == 302
    row = NotificationChannel.objects.get()
    assert (row.url, row.secret, row.host) == (HOOK, SECRET, "hooks.example.com")
    assert row.events == ["ask", "expire"]
    history = f"{ADMIN}{row.pk}/history/"
    for address in (ADMIN, f"{ADMIN}{row.pk}/change/", history):
        text = client.get(address).content.decode()
        assert "very-secret-path" not in text
        assert SECRET not in text
    assert "hooks.example.com" in client.get(ADMIN).content.decode()


def test_a_new_channel_is_told_of_everything_unless_events_are_taken_off(client, root):
    assert client.get(f"{ADMIN}add/").content.count(b'name="events"') == 7
    boxes = client.get(f"{ADMIN}add/").content.decode().split('name="events"')[1:]
    assert all("checked" in box.partition(">")[0] for box in boxes)


def test_saving_without_typing_them_again_keeps_address_and_secret(client, root):
    client.post(f"{ADMIN}add/", form())
    row = NotificationChannel.objects.get()
    changed = form(new_url="", new_secret="", name="desk-2", seen_revision="1")
    assert client.post(f"{ADMIN}{row.pk}/change/", changed).status_code == 302
    row = NotificationChannel.objects.get()
    assert (row.name, row.url, row.secret) == ("desk-2", HOOK, SECRET)
    assert row.host == "hooks.example.com"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"new_url": ""}, "Enter the address that is posted to."),
        ({"new_url": "ftp://example.com/"}, "begins with https://"),
        ({"new_secret": ""}, "Enter the secret that the receiver checks with."),
        ({"new_secret": "short"}, "Use 16 characters or more."),
        ({"kind": "slack", "new_url": ""}, "Enter the address that is posted to."),
        ({"kind": "mail"}, "Enter the address that mails go to."),
        ({"keys": []}, "This field is required."),
        ({"events": []}, "This field is required."),
    ],
)
def test_a_channel_that_could_tell_nobody_is_refused(client, root, fields, words):
    answer = client.post(f"{ADMIN}add/", form(**fields))
    assert answer.status_code == 200
    assert words in answer.content.decode()
    assert not NotificationChannel.objects.exists()


def test_what_happens_to_a_channel_is_audited_without_its_secrets(client, root):
    client.post(f"{ADMIN}add/", form())
    row = NotificationChannel.objects.get()
    client.post(f"{ADMIN}{row.pk}/change/", form(new_url="", name="desk-2", seen_revision="1"))
    client.post(f"{ADMIN}{row.pk}/delete/", {"post": "yes"})
    made, changed, deleted = AuditEntry.objects.order_by("seq")
    assert made.action == "notificationchannel.created"
    assert changed.detail["changes"]["name"] == {"before": "desk", "after": "desk-2"}
    assert changed.detail["changes"]["secret"] == {"before": "(not shown)", "after": "changed"}
    assert (deleted.action, deleted.subject) == (
        "notificationchannel.deleted",
        "notificationchannel:desk-2",
    )
    assert SECRET not in str([made.detail, changed.detail, deleted.detail])


def test_the_database_holds_neither_address_nor_secret_in_clear(django_db_blocker):
    from django.db import connection

    channel("webhook", url=HOOK, secret=SECRET)
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM approvals_app_notificationchannel")
        stored = str(cursor.fetchall())
    assert "very-secret-path" not in stored
    assert SECRET not in stored


def test_what_failed_is_seen_in_the_admin_with_its_reason_and_cannot_be_edited(client, root, news):
    channel("webhook", url="http://localhost:9/", secret=SECRET)
    news.ask()
    outbox.sweep()
    text = client.get("/admin/approvals_app/notificationdelivery/").content.decode()
    assert "not a public address" in text
    assert "apr-1" in text
    row = NotificationDelivery.objects.get()
    answer = client.post(f"/admin/approvals_app/notificationdelivery/{row.pk}/change/", {})
    assert answer.status_code == 403


def test_the_list_of_deliveries_costs_the_same_however_long(
    client, root, news, django_assert_max_num_queries
):
    for number in range(8):
        channel("mail", f"desk-{number}", email="desk@example.com")
    for number in range(3):
        news.ask(f"apr-{number}")
    outbox.prepare()
    with django_assert_max_num_queries(12):
        client.get("/admin/approvals_app/notificationdelivery/")
