"""Agents, connections and credentials over REST."""

import pytest
from cryptography.fernet import Fernet

from sessions_app.models import Connection, Credential, ToolPolicy
from tests.sessions_app.api import build

pytestmark = pytest.mark.django_db
SECRET = "sk-a-long-secret-value-9876"


def test_agents_are_listed_with_their_policies(django_assert_max_num_queries):
    for n in range(10):
        ToolPolicy.objects.create(agent=build.agent(f"agent-{n}"), pattern="shop__*")
    client = build.client_of(build.person("ann", "view_agent"))
    with django_assert_max_num_queries(5):
        rows = client.get("/api/v1/agents").json()["results"]
    assert len(rows) == 10
    assert rows[0]["tools"][0]["pattern"] == "shop__*"


def test_a_connection_shows_no_value_that_may_be_a_secret():
    credential = Credential.objects.create(name="shop-key", value=SECRET)
    Connection.objects.create(
        name="shop",
        command=["python", "--token", SECRET],
        env={"TOKEN": SECRET},
        headers={"X-Key": SECRET},
        url=f"https://user:{SECRET}@example.org/mcp?key={SECRET}",
        credential=credential,
    )
    client = build.client_of(build.person("ann", "view_connection"))
    response = client.get("/api/v1/connections/")
    assert SECRET not in response.content.decode()
    [row] = response.json()["results"]
    assert (row["program"], row["env"], row["headers"]) == ("python", ["TOKEN"], ["X-Key"])
    assert (row["url"], row["credential"]) == ("https://example.org/mcp", "shop-key")


def test_a_credential_is_written_and_never_shown():
    ann = build.person("ann", "view_credential", "add_credential", "change_credential")
    client = build.client_of(ann)
    made = client.post("/api/v1/credentials/", {"name": "openai-main", "value": SECRET})
    listed = client.get("/api/v1/credentials/")
    assert (made.status_code, made.json()["last_four"]) == (201, "9876")
    for response in (made, listed):
        assert SECRET not in response.content.decode()
        assert "value" not in str(response.json())
    assert Credential.objects.get().value == SECRET


def test_storing_again_replaces_the_value_and_raises_the_revision():
    client = build.client_of(build.person("ann", "add_credential", "change_credential"))
    client.post("/api/v1/credentials/", {"name": "a", "value": SECRET, "base_url": "http://x.org/"})
    again = client.post("/api/v1/credentials/", {"name": "a", "value": "another-long-secret-value"})
    assert again.status_code == 200
    assert (again.json()["revision"], again.json()["base_url"]) == (2, "http://x.org/")
    assert Credential.objects.get().value == "another-long-secret-value"


def test_replacing_needs_another_permission_than_adding():
    adder = build.client_of(build.person("adder", "add_credential"))
    assert adder.post("/api/v1/credentials/", {"name": "a", "value": SECRET}).status_code == 201
    refused = adder.post("/api/v1/credentials/", {"name": "a", "value": "another-value"})
    assert refused.status_code == 403
    assert "change_credential" in refused.json()["detail"]
    assert Credential.objects.get().value == SECRET


def test_the_value_of_a_refused_credential_is_not_repeated():
    client = build.client_of(build.person("ann", "add_credential"))
    response = client.post("/api/v1/credentials/", {"name": "not a name!", "value": SECRET})
    assert response.status_code == 400
    assert SECRET not in response.content.decode()


def test_a_credential_whose_key_is_gone_is_listed_as_one_that_cannot_be_read(settings):
    Credential.objects.create(name="old", value=SECRET)
    settings.DEXWEB_CREDENTIAL_KEYS = [Fernet.generate_key().decode()]
    client = build.client_of(build.person("ann", "view_credential", "change_credential"))
    [row] = client.get("/api/v1/credentials/").json()["results"]
    assert row["readable"] is False
    renewed = client.post("/api/v1/credentials/", {"name": "old", "value": "another-long-secret"})
    assert renewed.json()["readable"] is True
