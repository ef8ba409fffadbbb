"""A secret that is replaced over REST leaves a trace, and not of itself."""

import json

import pytest

from approvals_app import audit
from approvals_app.models import AuditEntry
from tests.sessions_app.api import build

pytestmark = pytest.mark.django_db
FIRST, SECOND = "sk-first-long-secret-1234", "sk-second-long-secret-9876"
PATH = "/api/v1/credentials/"


def test_who_stores_a_credential_over_rest_is_in_the_audit_log():
    rights = ("add_credential", "change_credential")
    client = build.client_of(build.person("ann", *rights))
    assert client.post(PATH, {"name": "openai", "value": FIRST}).status_code == 201
    body = {"name": "openai", "value": SECOND, "base_url": "http://elsewhere.example/"}
    assert client.post(PATH, body).status_code == 200
    made, changed = AuditEntry.objects.order_by("seq")
    assert (made.action, made.subject, made.actor_name) == (
        "credential.created",
        "credential:openai",
        "ann",
    )
    assert changed.action == "credential.changed"
    told = changed.detail["changes"]
    assert told["base_url"] == {"before": "", "after": "http://elsewhere.example/"}
    assert told["value"] == {"before": "(not shown)", "after": "changed"}
    everything = json.dumps([made.detail, told])
    assert FIRST not in everything and SECOND not in everything
    assert audit.verify(with_file=False) is None


def test_a_refused_or_repeated_one_adds_no_entry():
    client = build.client_of(build.person("ann", "add_credential"))
    key = {"headers": {"Idempotency-Key": "k-1"}}
    for _ in range(2):
        assert client.post(PATH, {"name": "openai", "value": FIRST}, **key).status_code == 201
    assert client.post(PATH, {"name": "openai", "value": SECOND}).status_code == 403
    assert AuditEntry.objects.count() == 1
