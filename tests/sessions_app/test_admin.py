"""The admin pages: secrets go in only, and nobody overwrites what another has saved."""

import re
from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, User
from django.urls import reverse
from django.utils import timezone
from rest_framework.authtoken.models import Token

from approvals_app import batch
from approvals_app.models import PermissionKey
from sessions_app.models import Agent, Connection, Credential, ToolPolicy
from tests.sessions_app.api import build

pytestmark = pytest.mark.django_db
SECRET = "sk-a-long-secret-value-9876"


@pytest.fixture
def client(client):
    client.force_login(User.objects.create_superuser("root"))
    return client


def address(row, page="change"):
    return reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_{page}", args=[row.pk])


def fields_of(client, url):
    """What a browser would send back from the form at ``url`` as it stands."""
    form = client.get(url).context["adminform"].form
    sent = {}
    for bound in form:
        value = bound.value()
        if isinstance(value, list):
            sent[bound.html_name] = [str(getattr(item, "pk", item)) for item in value]
        elif value is True:
            sent[bound.html_name] = "on"
        elif value not in (None, False):
            sent[bound.html_name] = value
    return sent


def no_inlines():
    return {"tools-TOTAL_FORMS": "0", "tools-INITIAL_FORMS": "0"}


def text(response):
    return response.content.decode()


# Signing in ---------------------------------------------------------------------------------


def test_the_admin_site_sends_everybody_to_our_own_sign_in_page(client):
    client.logout()
    response = client.get("/admin/login/?next=/admin/sessions_app/agent/")
    assert response.url == "/accounts/login/?next=/admin/sessions_app/agent/"


def test_another_sites_address_is_no_place_to_go_on_to(client):
    client.logout()
    response = client.get("/admin/login/?next=https://evil.example/")
    assert response.url == "/accounts/login/?next=/admin/"


def test_who_is_signed_in_but_no_staff_is_refused(client):
    client.force_login(build.person("ann"))
    assert client.get("/admin/", follow=True).status_code == 403


@pytest.mark.parametrize(
    "page",
    [
        "",
        "sessions_app/agent/",
        "sessions_app/agent/add/",
        "sessions_app/connection/",
        "sessions_app/connection/add/",
        "sessions_app/credential/",
        "sessions_app/credential/add/",
        "sessions_app/session/",
        "approvals_app/permissionkey/",
        "approvals_app/permissionkey/add/",
        "approvals_app/interrupt/",
        "approvals_app/decision/",
        "auth/user/",
        "auth/user/add/",
        "auth/group/add/",
    ],
)
def test_pages_need_nothing_inline(client, page):
    response = client.get(f"/admin/{page}")
    assert response.status_code == 200
    assert "'unsafe-inline'" not in response["Content-Security-Policy"]
    assert not re.search(r"<script>|<style|\sstyle=|\son[a-z]+=", text(response))


# Credentials --------------------------------------------------------------------------------


@pytest.fixture
def credential():
    return Credential.objects.create(name="openai-main", value=SECRET)


def test_a_credentials_value_is_stored_and_shown_nowhere(client):
    client.post(
        "/admin/sessions_app/credential/add/",
        {"name": "openai-main", "new_value": SECRET, "enabled": "on"},
    )
    stored = Credential.objects.get()
    assert stored.value == SECRET
    for page in (
        "/admin/sessions_app/credential/",
        address(stored),
        address(stored, "history"),
        address(stored, "delete"),
        "/admin/",
    ):
        shown = text(client.get(page))
        assert "openai-main" in shown
        assert SECRET not in shown
    assert "…9876" in text(client.get("/admin/sessions_app/credential/"))


def test_a_refused_form_does_not_repeat_the_value(client):
    response = client.post(
        "/admin/sessions_app/credential/add/", {"name": "not a name!", "new_value": SECRET}
    )
    assert response.status_code == 200
    assert SECRET not in text(response)


def test_a_new_credential_needs_a_value(client):
    response = client.post("/admin/sessions_app/credential/add/", {"name": "empty"})
    assert "Enter the secret" in text(response)
    assert not Credential.objects.exists()


def test_a_blank_value_keeps_the_present_one(client, credential):
    sent = fields_of(client, address(credential))
    client.post(address(credential), {**sent, "name": "renamed"})
    stored = Credential.objects.get()
    assert (stored.name, stored.value, stored.last_four, stored.revision) == (
        "renamed",
        SECRET,
        "9876",
        2,
    )


def test_a_new_value_replaces_the_present_one(client, credential):
    sent = fields_of(client, address(credential))
    client.post(address(credential), {**sent, "new_value": "another-long-secret-1234"})
    stored = Credential.objects.get()
    assert (stored.value, stored.last_four) == ("another-long-secret-1234", "1234")


def test_a_key_is_not_sent_to_another_address_without_entering_it_again(client, credential):
    sent = {**fields_of(client, address(credential)), "base_url": "https://evil.example/v1"}
    response = client.post(address(credential), sent)
    assert "enter it again" in text(response)
    assert Credential.objects.get().base_url == ""
    client.post(address(credential), {**sent, "new_value": SECRET})
    assert Credential.objects.get().base_url == "https://evil.example/v1"


def test_the_log_of_changes_holds_no_value(client, credential):
    sent = fields_of(client, address(credential))
    client.post(address(credential), {**sent, "new_value": "another-long-secret-1234"})
    [entry] = LogEntry.objects.all()
    assert "another-long-secret-1234" not in f"{entry.change_message} {entry.object_repr}"
    assert "Value" in entry.change_message


def test_a_credential_in_use_says_by_what_and_cannot_be_deleted(client, credential):
    build.agent(credential=credential)
    assert "agent refund-desk" in text(client.get("/admin/sessions_app/credential/"))
    response = client.post(address(credential, "delete"), {"post": "yes"})
    assert "refund-desk" in text(response)
    assert Credential.objects.exists()


def test_a_credential_that_no_key_opens_can_still_be_entered_anew(client, credential):
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("UPDATE sessions_app_credential SET value = 'garbage'")
    assert 'alt="False"' in text(client.get("/admin/sessions_app/credential/"))
    sent = fields_of(client, address(credential))
    client.post(address(credential), {**sent, "new_value": SECRET})
    assert Credential.objects.get().value == SECRET
    assert 'alt="False"' not in text(client.get("/admin/sessions_app/credential/"))


def test_the_list_asks_a_fixed_number_of_queries(client, django_assert_max_num_queries):
    for n in range(20):
        row = Credential.objects.create(name=f"c-{n}", value=SECRET)
        build.agent(f"agent-{n}", credential=row)
    with django_assert_max_num_queries(9):
        client.get("/admin/sessions_app/credential/")
    with django_assert_max_num_queries(9):
        client.get("/admin/sessions_app/agent/")


def test_tokens_are_not_shown_in_the_admin_site(client):
    ann = build.person("ann")
    token = Token.objects.create(user=ann)
    assert client.get("/admin/authtoken/tokenproxy/").status_code == 404
    assert token.key not in text(client.get(address(ann)))


# Two people at once -------------------------------------------------------------------------


def test_the_second_of_two_people_sees_both_versions_and_overwrites_nothing(client):
    agent = build.agent(instructions="Be kind.")
    url = address(agent)
    ann, bob = fields_of(client, url), fields_of(client, url)
    client.post(url, {**ann, **no_inlines(), "instructions": "Be kind and quick."})
    response = client.post(url, {**bob, **no_inlines(), "instructions": "Be brief.", "title": "T"})
    shown = text(response)
    assert "Somebody else saved this" in shown
    assert "Be kind and quick." in shown
    assert "Be brief." in shown
    stored = Agent.objects.get()
    assert (stored.instructions, stored.title, stored.revision) == ("Be kind and quick.", "", 2)


def test_having_seen_both_versions_one_may_save_again(client):
    agent = build.agent()
    url = address(agent)
    sent = fields_of(client, url)
    client.post(url, {**sent, **no_inlines(), "title": "Theirs"})
    mine = {**sent, **no_inlines(), "title": "Mine"}
    refused = client.post(url, mine)
    seen = refused.context["adminform"].form["seen_revision"].value()
    client.post(url, {**mine, "seen_revision": seen})
    assert Agent.objects.get().title == "Mine"


def test_a_form_without_its_revision_is_refused(client):
    agent = build.agent()
    sent = fields_of(client, address(agent))
    del sent["seen_revision"]
    client.post(address(agent), {**sent, **no_inlines(), "title": "Blind"})
    assert Agent.objects.get().title == ""


def one_policy(policy):
    """The inline of the page with ``policy`` in it, as a browser sends it; it asks nobody."""
    owner = "agent" if policy.agent_id else "connection"
    return {
        "tools-TOTAL_FORMS": "1",
        "tools-INITIAL_FORMS": "1" if policy.pk else "0",
        "tools-0-id": policy.pk or "",
        f"tools-0-{owner}": policy.agent_id or policy.connection_id,
        "tools-0-pattern": policy.pattern,
        "tools-0-enabled": "on",
        "tools-0-effect": "write",
        "tools-0-permission": "tools.approve",
        "tools-0-risk": "low",
        "tools-0-deadline": "00:30:00",
        "tools-0-at_deadline": "reject",
        "tools-0-approve_n": "1",
        "tools-0-deny_m": "1",
        "tools-0-reminders": "[]",
        "tools-0-escalation": "",
        "tools-0-timeout": "00:02:00",
    }


def test_a_preview_says_what_policies_would_have_asked_and_stores_nothing(client):
    agent = build.agent()
    policy = ToolPolicy.objects.create(agent=agent, pattern="shop__*", effect="read")
    session = build.session()
    for n, tool in enumerate(["shop__refund", "shop__refund", "shop__look", "mail__send"]):
        build.call(session, f"c-{n}", "{}", tool=tool, requested_at=timezone.now())
    build.call(session, "old", "{}", requested_at=timezone.now() - timedelta(days=8))
    page = client.get(address(agent))
    assert f'formaction="/admin/sessions_app/agent/{agent.pk}/preview/"' in text(page)

    sent = {**fields_of(client, address(agent)), **one_policy(policy), "title": "Half typed"}
    url = f"/admin/sessions_app/agent/{agent.pk}/preview/"
    shown = client.post(url, sent)
    said = " ".join(text(shown).split())
    assert "1 tool would have asked in the last 7 days, 1 time (now: 4)" in said
    assert "Half typed" in said
    assert f'action="{address(agent)}"' in said
    policy.refresh_from_db()
    agent.refresh_from_db()
    assert (policy.needs_approval, agent.title, agent.revision) == (True, "", 1)

    faulty = client.post(url, {**sent, "tools-0-approve_n": "0"})
    assert "would have asked" not in text(faulty)
    assert "greater than or equal to 1" in text(faulty)
    assert client.get(url).status_code == 302


def test_a_preview_is_for_those_who_may_edit(client):
    agent = build.agent()
    client.force_login(build.person("ann", "view_agent"))
    User.objects.update(is_staff=True)
    answer = client.post(f"/admin/sessions_app/agent/{agent.pk}/preview/", {})
    assert answer.status_code == 403


def test_a_connection_has_policies_of_its_own_tools_only(client):
    shop = Connection.objects.create(name="shop", command=["python"])
    other = ToolPolicy(connection=shop, pattern="mail__*")
    sent = {**fields_of(client, address(shop)), **one_policy(other)}
    assert "begins with shop__" in text(client.post(address(shop), sent))
    client.post(address(shop), {**sent, "tools-0-pattern": "shop__*"})
    assert shop.tools.get().pattern == "shop__*"
    shop.refresh_from_db()
    assert shop.revision == 2


def test_a_changed_policy_is_a_change_of_its_agent(client):
    agent = build.agent()
    policy = ToolPolicy.objects.create(agent=agent, pattern="shop__*")
    url = address(agent)
    sent = {**fields_of(client, url), **one_policy(policy), "tools-0-effect": "read"}
    client.post(url, sent)
    policy.refresh_from_db()
    agent.refresh_from_db()
    assert (policy.effect, policy.needs_approval, agent.revision) == ("read", False, 2)
    stale = client.post(url, {**sent, "tools-0-effect": "write"})
    assert "shop__*: reads only, asks nobody" in text(stale)
    policy.refresh_from_db()
    assert policy.effect == "read"


def test_a_credentials_value_is_not_shown_in_a_conflict(client, credential):
    url = address(credential)
    sent = fields_of(client, url)
    client.post(url, {**sent, "name": "renamed"})
    response = client.post(url, {**sent, "new_value": "another-long-secret-1234"})
    assert "(not shown)" in text(response)
    assert "another-long-secret-1234" not in text(response)
    assert Credential.objects.get().value == SECRET


def test_people_and_groups_and_keys_are_guarded_too(client):
    key = PermissionKey.objects.create(key="refunds.approve")
    group = Group.objects.create(name="Approvers")
    ann = build.person("ann")
    for row, name, first, second in (
        (key, "key", "a.first", "a.second"),
        (group, "name", "First", "Second"),
        (ann, "first_name", "First", "Second"),
    ):
        url = address(row)
        sent = {**fields_of(client, url), "date_joined_0": "2026-01-01", "date_joined_1": "00:00"}
        saved = client.post(url, {**sent, name: first})
        assert saved.status_code == 302, saved.context["errors"]
        assert "Somebody else saved this" in text(client.post(url, {**sent, name: second}))
        row.refresh_from_db()
        assert getattr(row, name) == first


def test_nobody_is_deleted_since_decisions_keep_their_names(client):
    assert client.post(address(build.person("ann"), "delete"), {"post": "yes"}).status_code == 403


# What is typed ------------------------------------------------------------------------------


def test_a_text_that_is_no_json_is_kept_and_its_fault_is_placed(client):
    response = client.post(
        "/admin/sessions_app/connection/add/",
        {
            "name": "shop",
            "transport": "stdio",
            "command": '["python",\n oops]',
            "env": "",
            "headers": "",
        },
    )
    assert "in line 2, column 2" in text(response)
    assert "oops]" in text(response)


def test_a_connection_is_made_with_empty_boxes_left_empty(client):
    sent = {"name": "shop", "transport": "stdio", "command": '["python"]', "env": "", "headers": ""}
    client.post("/admin/sessions_app/connection/add/", {**sent, **no_inlines()})
    stored = Connection.objects.get()
    assert (stored.command, stored.env, stored.headers) == (["python"], {}, {})


def test_the_form_of_a_connection_warns_of_secrets(client):
    assert "Put no secret here" in text(client.get("/admin/sessions_app/connection/add/"))


def new_agent(**fields):
    return {"name": "desk", "pool": "default", "settings": "{}", **no_inlines(), **fields}


def test_a_faulty_script_is_refused_entry_by_entry(client):
    response = client.post(
        "/admin/sessions_app/agent/add/",
        new_agent(model="demo:script", settings='{"script": [{"say": "no"}]}'),
    )
    assert "Entry 1" in text(response)
    assert not Agent.objects.exists()


def test_a_model_nobody_heard_of_is_doubted_but_taken(client):
    response = client.post(
        "/admin/sessions_app/agent/add/", new_agent(model="openai:my-own-model"), follow=True
    )
    assert "is not among the models known here" in text(response)
    assert Agent.objects.exists()


def test_a_name_that_can_be_no_model_is_refused(client):
    response = client.post("/admin/sessions_app/agent/add/", new_agent(model="gpt"))
    assert "Write provider:model" in text(response)


# What happened ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "page", ["sessions_app/session", "approvals_app/interrupt", "approvals_app/decision"]
)
def test_what_happened_cannot_be_added(client, page):
    assert client.get(f"/admin/{page}/add/").status_code == 403


def test_sessions_and_interrupts_are_only_looked_at(client):
    interrupt = build.interrupt(build.session())
    for row in (interrupt.session, interrupt):
        page = client.get(address(row))
        assert page.status_code == 200
        assert 'name="_save"' not in text(page)
        assert client.post(address(row), {"title": "x"}).status_code == 403
        assert client.post(address(row, "delete"), {"post": "yes"}).status_code == 403


def test_an_approval_in_the_admin_leads_to_the_page_where_it_is_decided(client):
    row = build.interrupt(build.session())
    assert 'href="/approvals/i-1/">Look and decide' in client.get(address(row)).content.decode()


def test_too_many_to_read_are_not_led_to_be_decided(client, monkeypatch):
    monkeypatch.setattr(batch, "MOST", 1)
    session = build.session()
    rows = [build.interrupt(session, f"i-{number}") for number in (1, 2)]
    chosen = {"action": "decide_together", "_selected_action": [row.pk for row in rows]}
    answer = client.post("/admin/approvals_app/interrupt/", chosen, follow=True)
    assert "At most 1 can be decided together" in text(answer)
