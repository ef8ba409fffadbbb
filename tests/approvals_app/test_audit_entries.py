"""What gets into the audit log, by every way in, and what never does."""

import io
import uuid

import pytest
from django.contrib.auth.models import Group, User
from django.core.management import call_command
from django.urls import reverse
from rest_framework.authtoken.models import Token

from approvals_app import audit
from approvals_app.models import AuditEntry, PermissionKey
from sessions_app.models import Agent, Connection, Credential, ToolPolicy
from tests.sessions_app.api import build
from tests.sessions_app.test_admin import address, fields_of, no_inlines

pytestmark = pytest.mark.django_db
SECRET = "sk-a-long-secret-value-9876"


@pytest.fixture(autouse=True)
def no_engine(settings, tmp_path):
    settings.DEXWEB_VAR = tmp_path
    settings.DEXWEB_TEMPORAL_ADDRESS = "127.0.0.1:1"
    settings.DEXWEB_ENGINE_TIMEOUT = 1.0


@pytest.fixture
def client(client):
    client.force_login(User.objects.create_superuser("root", password="before-9876"))
    return client


def only_entry(action):
    entry = AuditEntry.objects.get(action=action)
    assert audit.verify(with_file=False) is None
    return entry


def save(client, row, **changes):
    url = address(row)
    response = client.post(url, {**fields_of(client, url), **changes})
    assert response.status_code == 302, response.content.decode()


def wrong_decision(row):
    return {"verdict": "approve", "revision": row.revision + 1, "args_hash": row.args_hash}


# Ways in -------------------------------------------------------------------------------------


def test_a_refused_decision_says_by_which_way_it_came(client):
    ann = build.person("ann", *build.LOOK, keys=("refunds.approve",))
    row = build.interrupt(build.session())
    client.force_login(ann)
    body = wrong_decision(row)
    token = f"Token {Token.objects.create(user=ann).key}"
    json = {"content_type": "application/json"}
    client.post("/api/v1/approvals/i-1/decide", body, headers={"Authorization": token}, **json)
    client.post("/api/v1/approvals/i-1/decide", body, **json)
    client.post("/approvals/i-1/decide/", {**body, "request_id": str(uuid.uuid4())})
    found = AuditEntry.objects.order_by("seq")
    assert [entry.via for entry in found] == ["api:token", "api:session", "page"]
    for entry in found:
        assert (entry.actor_name, entry.action) == ("ann", "decision.refused")
        assert (entry.subject, entry.session_id) == ("interrupt:i-1", "refund-desk-1")
        assert entry.detail["code"] == "stale_interrupt"


def test_somebody_who_is_not_allowed_is_in_the_log_with_what_they_tried(client):
    client.force_login(build.person("eve", *build.LOOK))
    row = build.interrupt(build.session())
    client.post(
        "/api/v1/approvals/i-1/decide",
        {"verdict": "approve", "revision": row.revision, "args_hash": row.args_hash},
        content_type="application/json",
    )
    entry = only_entry("decision.refused")
    assert (entry.actor_name, entry.detail["code"]) == ("eve", "not_allowed")


# The admin site ------------------------------------------------------------------------------


def test_a_changed_policy_is_told_before_and_after(client):
    agent = build.agent()
    policy = ToolPolicy.objects.create(agent=agent, pattern="shop__*", risk="high")
    save(client, agent, **{"title": "Refunds", "tools-0-risk": "low", **inline(policy)})
    entry = only_entry("agent.changed")
    assert (entry.actor_name, entry.via, entry.subject) == ("root", "admin", "agent:refund-desk")
    assert entry.detail["changes"] == {
        "title": {"before": "", "after": "Refunds"},
        "tools.shop__*.risk": {"before": "high", "after": "low"},
    }


def inline(policy):
    """The policy's own row in the form of its agent, all but its risk as it stands."""
    fields = {
        "id": policy.pk,
        "agent": policy.agent_id,
        "pattern": policy.pattern,
        "enabled": "on",
        "effect": policy.effect,
        "needs_approval": "on",
        "permission": policy.permission,
        "deadline": "1:00:00",
        "at_deadline": policy.at_deadline,
        "timeout": "0:02:00",
        "approve_n": 1,
        "deny_m": 1,
        "reason_on_reject": "on",
        "reminders": "[]",
        "escalation": "[]",
    }
    return {
        "tools-TOTAL_FORMS": "1",
        "tools-INITIAL_FORMS": "1",
        **{f"tools-0-{name}": value for name, value in fields.items()},
    }


def test_a_save_that_changes_nothing_is_no_entry(client):
    save(client, build.agent(), **no_inlines())
    assert not AuditEntry.objects.exists()


def test_of_a_credential_only_that_it_changed_is_told(client):
    credential = Credential.objects.create(name="openai", value=SECRET)
    save(client, credential, new_value="sk-another-long-secret-1234", enabled="")
    entry = only_entry("credential.changed")
    assert entry.detail["changes"]["value"] == {"before": "(not shown)", "after": "changed"}
    assert entry.detail["changes"]["enabled"] == {"before": True, "after": False}
    assert "sk-" not in str(entry.detail)


def test_headers_and_environment_of_a_connection_are_not_repeated(client):
    connection = Connection.objects.create(
        name="shop", transport="http", url="http://127.0.0.1:9/", headers={"X-Key": SECRET}
    )
    save(client, connection, headers='{"X-Key": "sk-new"}', **no_inlines())
    entry = only_entry("connection.changed")
    assert entry.detail["changes"]["headers"]["after"] == "changed"
    assert "sk-" not in str(entry.detail)


def test_who_came_into_a_group_is_told(client):
    group = Group.objects.create(name="Approvers")
    joined = {"date_joined_0": "2026-01-01", "date_joined_1": "00:00"}
    save(client, build.person("ann"), groups=[str(group.pk)], **joined)
    entry = only_entry("user.changed")
    assert entry.subject == "user:ann"
    assert entry.detail["changes"]["groups"] == {"before": [], "after": ["Approvers"]}


def test_who_holds_a_permission_key_is_told(client):
    key = PermissionKey.objects.create(key="refunds.approve")
    group = Group.objects.create(name="Approvers")
    save(client, key, groups=[str(group.pk)])
    entry = only_entry("permissionkey.changed")
    assert entry.detail["changes"]["groups"] == {"before": [], "after": ["Approvers"]}


def test_a_new_password_is_told_and_not_shown(client):
    ann = build.person("ann")
    url = reverse("admin:auth_user_password_change", args=[ann.pk])
    passwords = {"password1": "after-and-long-1", "password2": "after-and-long-1"}
    client.post(url, {**passwords, "usable_password": "true"})
    assert only_entry("user.password_changed").subject == "user:ann"
    added = {"username": "bob", **passwords, "usable_password": "true"}
    assert client.post(reverse("admin:auth_user_add"), added).status_code == 302
    entry = only_entry("user.created")
    assert "after-and-long" not in str(entry.detail)
    assert "pbkdf2" not in str(entry.detail)


@pytest.mark.parametrize("way", ["page", "list"])
def test_what_was_deleted_is_told_by_its_name(client, way):
    agent = build.agent()
    if way == "page":
        client.post(address(agent, "delete"), {"post": "yes"})
    else:
        chosen = {"action": "delete_selected", "_selected_action": [agent.pk], "post": "yes"}
        client.post(reverse("admin:sessions_app_agent_changelist"), chosen)
    assert not Agent.objects.exists()
    assert only_entry("agent.deleted").subject == "agent:refund-desk"


# Commands ------------------------------------------------------------------------------------

FILE = """
credentials: {my-key: {from_env: MY_KEY}}
connections: {shop: {transport: stdio, command: [python, -m, shop], credential: my-key}}
agents:
  desk: {model: "demo:refund-desk", connections: [shop], tools: {shop__look: {effect: read}}}
"""


def test_an_import_is_told_row_by_row_and_once(tmp_path, monkeypatch):
    monkeypatch.setenv("MY_KEY", SECRET)
    file = tmp_path / "agents.yaml"
    file.write_text(FILE)
    for _ in range(2):
        call_command("import_agents", str(file), stdout=io.StringIO())
    subjects = [(entry.action, entry.subject) for entry in AuditEntry.objects.order_by("seq")]
    assert subjects == [
        ("credential.created", "credential:my-key"),
        ("connection.created", "connection:shop"),
        ("agent.created", "agent:desk"),
    ]
    assert {entry.via for entry in AuditEntry.objects.all()} == {"command"}
    assert SECRET not in str([entry.detail for entry in AuditEntry.objects.all()])
    file.write_text(FILE.replace("effect: read", "effect: write"))
    call_command("import_agents", str(file), stdout=io.StringIO())
    changes = only_entry("agent.changed").detail["changes"]
    assert changes["tools.shop__look.effect"] == {"before": "read", "after": "write"}


def test_a_token_is_told_when_it_is_made_and_shown_but_not_which(settings):
    build.person("ann")
    out = io.StringIO()
    for _ in range(2):
        call_command("token", "ann", stdout=out)
    assert only_entry("token.made").subject == "user:ann"
    assert only_entry("token.shown").via == "command"
    key = out.getvalue().split()[0]
    assert key not in str([entry.detail for entry in AuditEntry.objects.all()])
