"""The Flow of an agent, drawn from its definition."""

from datetime import timedelta

import pytest

from sessions_app.graph.agent import agent_part
from sessions_app.models import Connection
from tests.sessions_app.api import build

pytestmark = pytest.mark.django_db


@pytest.fixture
def desk():
    agent = build.agent("desk", model="demo:script", title="Desk")
    for name in ("mail", "shop"):
        agent.connections.add(Connection.objects.create(name=name, command=[name]))
    agent.tools.create(pattern="shop__lookup", effect="read", needs_approval=False)
    agent.tools.create(
        pattern="shop__refund", permission="refunds.approve", deadline=timedelta(minutes=30)
    )
    agent.tools.create(pattern="mail__*", effect="idempotent", needs_approval=False)
    return agent


def lines_of(part):
    """(label, sublabel, labels of what comes next) for each box."""
    label = {node.id: node.label for node in part.nodes}
    after = {node.id: [label[b] for a, b in part.edges if a == node.id] for node in part.nodes}
    return {node.label: (node.sublabel, after[node.id]) for node in part.nodes}


def test_tools_hang_below_their_connection_and_their_gate(desk):
    lines = lines_of(agent_part(desk))
    assert lines["Message"] == ("starts a turn", ["demo:script"])
    assert lines["demo:script"] == ("model call", ["Answer", "mail", "shop"])
    assert lines["shop"] == ("stdio connection", ["lookup", "refunds.approve", "tools.approve"])
    assert lines["lookup"] == ("reads only", ["Results"])
    assert lines["refunds.approve"] == ("approval within 30 min", ["refund"])
    assert lines["refund"] == ("writes, never repeated", ["Results"])
    assert lines["any tool"] == ("writes, safe to repeat", ["Results"])
    assert lines["tools.approve"] == ("approval within 1 h", ["any other tool"])
    assert lines["Results"][1] == ["demo:script"]


def test_only_a_gate_is_a_persons_turn(desk):
    amber = [node.label for node in agent_part(desk).nodes if node.state == "act"]
    assert amber == ["refunds.approve", "tools.approve"]


def test_a_disabled_connection_offers_no_tools(desk):
    Connection.objects.filter(name="shop").update(enabled=False)
    lines = lines_of(agent_part(desk))
    assert lines["shop"] == ("disabled", [])
    assert "refund" not in lines


def test_an_agent_without_tools_only_answers():
    lines = lines_of(agent_part(build.agent("plain", model="demo:script")))
    assert lines == {
        "Message": ("starts a turn", ["demo:script"]),
        "demo:script": ("model call", ["Answer"]),
        "Answer": ("ends the turn", []),
    }


def test_a_pattern_over_all_connections_is_shown_at_each(desk):
    desk.tools.create(pattern="*_delete", permission="deletes.approve")
    part = agent_part(desk)
    assert sum(node.label == "*_delete" for node in part.nodes) == 2


def test_the_page_shows_the_drawing_and_the_policies_in_words(client, desk):
    client.force_login(build.person("ann", *build.LOOK))
    page = client.get("/agents/desk/graph/").content.decode()
    assert '<svg xmlns="http://www.w3.org/2000/svg" class="graph"' in page
    for part in ("refunds.approve", "shop__refund", "Runs at once"):
        assert part in page
    assert "/agents/desk/graph/" in client.get("/agents/").content.decode()


def test_without_a_layout_program_the_page_shows_a_list_and_says_why(client, desk, settings):
    settings.DEXWEB_DOT = "/nowhere/dot"
    client.force_login(build.person("ann", *build.LOOK))
    page = client.get("/agents/desk/graph/").content.decode()
    assert "Shown as a list" in page
    assert "refunds.approve" in page


def test_an_agent_that_is_not_there_is_not_found(client):
    client.force_login(build.person("ann", *build.LOOK))
    assert client.get("/agents/none/graph/").status_code == 404
