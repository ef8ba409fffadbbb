"""What Prometheus is told, and who may ask."""

from datetime import timedelta

import pytest
from prometheus_client.parser import text_string_to_metric_families
from rest_framework.authtoken.models import Token
from rest_framework.test import APIClient

from approvals_app.models import Decision
from sessions_app.models import WorkerPresence
from tests.sessions_app.api import build

pytestmark = pytest.mark.django_db

# As Prometheus itself asks.
ACCEPT = "application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"


def scrape(user, accept=ACCEPT):
    token = Token.objects.create(user=user)
    client = APIClient()
    return client.get("/metrics", headers={"Authorization": f"Token {token}", "Accept": accept})


def numbers_of(response):
    """{(name, label value): number}"""
    families = text_string_to_metric_families(response.content.decode())
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in families
        for sample in family.samples
    }


def test_sessions_approvals_and_decisions_are_counted():
    ann = build.person("ann", *build.LOOK)
    waiting = build.session("a", phase="waiting_approval")
    build.session("b", status="failed", phase="idle")
    row = build.interrupt(waiting, "i-1", state="expired")
    build.interrupt(waiting, "i-2")
    decision = Decision.objects.create(
        request_id="r", interrupt=row, actor=ann, verdict="approve", revision=1, args_hash="0"
    )
    decision.state = "delivered"
    decision.delivered_at = decision.created_at + timedelta(seconds=1.5)
    decision.save()

    response = scrape(ann)
    assert response.status_code == 200
    assert response["Content-Type"].startswith("text/plain; version=")
    numbers = numbers_of(response)
    assert numbers["dexweb_sessions", "running"] == 1
    assert numbers["dexweb_sessions", "failed"] == 1
    assert numbers["dexweb_sessions", "completed"] == 0
    assert numbers["dexweb_running_sessions", "waiting_approval"] == 1
    assert numbers["dexweb_running_sessions", "idle"] == 0
    assert numbers["dexweb_approvals", "pending"] == 1
    assert numbers["dexweb_approvals", "expired"] == 1
    assert numbers["dexweb_approvals", "rejected"] == 0
    assert numbers["dexweb_decisions", "delivered"] == 1
    assert numbers["dexweb_decision_delivery_seconds_count",] == 1
    assert numbers["dexweb_decision_delivery_seconds_sum",] == 1.5


def test_an_empty_installation_is_all_zeros():
    WorkerPresence.objects.all().delete()
    assert set(numbers_of(scrape(build.person("ann", *build.LOOK))).values()) == {0}


@pytest.mark.parametrize("accept", [ACCEPT, "text/plain", "*/*"])
def test_it_needs_a_token_and_the_permission_to_look(client, accept):
    assert client.get("/metrics", headers={"Accept": accept}).status_code == 401
    refused = scrape(build.person("nobody"), accept)
    assert refused.status_code == 403
    assert b"dexweb_sessions" not in refused.content


def test_the_number_of_queries_is_fixed(django_assert_max_num_queries):
    ann = build.person("ann", *build.LOOK)
    for number in range(20):
        build.interrupt(build.session(f"s-{number}"), f"i-{number}")
    with django_assert_max_num_queries(12):
        scrape(ann)
