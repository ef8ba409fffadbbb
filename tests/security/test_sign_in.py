"""Guessing passwords is bounded, and a pause tells nobody whether a guess was right."""

import re
import threading
from collections import Counter

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.db import connections
from django.test import Client

from approvals_app.models import AuditEntry

pytestmark = pytest.mark.django_db
RIGHT, WRONG = "right-horse-battery-9", "wrong-horse-battery-9"


@pytest.fixture(autouse=True)
def ann():
    cache.clear()
    yield User.objects.create_user("ann", password=RIGHT)
    cache.clear()


def sign_in(name="ann", password=WRONG, address="192.0.2.1", path="/accounts/login/", **headers):
    form = {"username": name, "password": password}
    return Client().post(path, form, REMOTE_ADDR=address, headers=headers)


def fail(times, **how):
    assert {sign_in(**how).status_code for _ in range(times)} <= {200}


def said(answer):
    return re.findall("Too many[^<]*", answer.content.decode())


def test_the_eleventh_try_is_refused_in_words_and_keeps_the_name():
    fail(10)
    answer = sign_in()
    assert answer.status_code == 429
    assert 0 < int(answer["Retry-After"]) <= 300
    page = answer.content.decode()
    assert "Too many tries; try again in 5 minutes." in page
    assert 'value="ann"' in page
    assert WRONG not in page


def test_a_right_password_during_the_pause_gets_the_same_words():
    fail(10)
    wrong, right = sign_in(), sign_in(password=RIGHT)
    assert right.status_code == 429
    assert said(right) == said(wrong) != []


def test_a_pause_is_for_this_name_from_this_address_only():
    fail(10)
    User.objects.create_user("bob", password=RIGHT)
    assert sign_in(password=RIGHT, address="192.0.2.2").status_code == 302
    assert sign_in("bob", RIGHT).status_code == 302


def test_signing_in_begins_the_count_anew():
    fail(9)
    assert sign_in(password=RIGHT).status_code == 302
    fail(10)
    assert sign_in().status_code == 429


def test_names_in_turn_are_bounded_for_one_address():
    for name in range(50):
        fail(1, name=f"guess-{name}")
    assert sign_in(password=RIGHT).status_code == 429
    assert sign_in(password=RIGHT, address="192.0.2.2").status_code == 302


def test_addresses_in_turn_are_bounded_for_one_name():
    for number in range(100):
        fail(1, address=f"198.51.100.{number}")
    assert sign_in(password=RIGHT, address="192.0.2.9").status_code == 429


def test_a_network_of_ipv6_counts_as_one_address():
    for number in range(10):
        fail(1, address=f"2001:db8:1:2::{number + 1:x}")
    assert sign_in(address="2001:db8:1:2:ffff::1").status_code == 429
    assert sign_in(address="2001:db8:1:3::1").status_code == 200


def test_somebody_who_is_paused_does_not_pause_their_neighbours():
    fail(10)
    assert {sign_in().status_code for _ in range(60)} == {429}
    User.objects.create_user("bob", password=RIGHT)
    assert sign_in("bob", RIGHT).status_code == 302


def test_the_admin_site_has_no_second_way_in():
    """It sends all that is posted there to the one sign-in page, and looks at no password."""
    answer = sign_in(password=RIGHT, path="/admin/login/")
    assert answer.status_code == 302
    assert answer["Location"].startswith("/accounts/login/")
    assert not answer.cookies.get("sessionid")


def test_a_forwarded_address_counts_only_behind_a_proxy_that_is_trusted(settings):
    for number in range(10):
        fail(1, **{"X-Forwarded-For": f"198.51.100.{number}"})
    assert sign_in(**{"X-Forwarded-For": "198.51.100.77"}).status_code == 429
    settings.DEXWEB_HTTPS = True
    assert sign_in(**{"X-Forwarded-For": "198.51.100.77"}).status_code == 200


def test_behind_a_proxy_what_the_client_wrote_before_it_does_not_count(settings):
    settings.DEXWEB_HTTPS = True
    for number in range(10):
        fail(1, **{"X-Forwarded-For": f"198.51.100.{number}, 203.0.113.5"})
    assert sign_in(**{"X-Forwarded-For": "198.51.100.77, 203.0.113.5"}).status_code == 429


def test_each_pause_is_in_the_audit_log_once_and_no_password_anywhere(caplog):
    fail(10)
    for _ in range(3):
        sign_in()
    entry = AuditEntry.objects.get(action="signin.paused")
    assert (entry.subject, entry.via) == ("name ann; address 192.0.2.1", "page")
    assert entry.detail == {"failures": 10, "minutes": 5}
    assert "Signing in is paused" in caplog.text
    assert WRONG not in caplog.text


def test_a_password_typed_as_the_name_is_not_kept(caplog):
    fail(10, name=RIGHT)
    assert AuditEntry.objects.get().subject == "name that nobody has; address 192.0.2.1"
    assert RIGHT not in caplog.text


@pytest.mark.django_db(transaction=True)
def test_many_at_once_are_no_way_around_it():
    answers = []

    def guess():
        answers.append(sign_in().status_code)
        connections.close_all()

    threads = [threading.Thread(target=guess) for _ in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Counter(answers) == {200: 10, 429: 30}
    assert AuditEntry.objects.filter(action="signin.paused").count() == 1
