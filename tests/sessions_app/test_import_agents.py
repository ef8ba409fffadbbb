"""Agents as files."""

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from sessions_app.agents_yaml import InvalidAgents, load_agents
from sessions_app.models import Agent, Connection, Credential, ToolPolicy
from sessions_app.step_times import limits_for, tool_times

pytestmark = pytest.mark.django_db

DESK = """
credentials:
  openai-main: {from_env: OPENAI_KEY}
connections:
  shop: {transport: stdio, command: [python, -m, my_shop], env: {SHOP_DB: shop.sqlite3, PORT: 80}}
  search: {transport: http, url: "http://127.0.0.1:9000/mcp"}
agents:
  refund-desk:
    model: demo:refund-desk
    credential: openai-main
    instructions: You handle refunds.
    connections: [shop]
    tools:
      shop__lookup_order: {effect: read}
      shop__issue_refund:
        effect: write
        approval: {permission: refunds.approve, risk: high, deadline: 30m, at_deadline: reject}
      "*": {effect: write, approval: {permission: tools.approve, deadline: 1h}}
"""
KEY = "sk-verysecretvalue-1234"
ENVIRON = {"OPENAI_KEY": KEY}


def errors_of(text, environ=ENVIRON):
    with pytest.raises(InvalidAgents) as refused:
        load_agents(text, environ)
    return refused.value.errors


def whats(report):
    return [(change.kind, change.name, change.what) for change in report.changes]


def test_a_file_creates_what_it_describes():
    report = load_agents(DESK, ENVIRON)
    assert whats(report) == [
        ("credential", "openai-main", "created"),
        ("connection", "shop", "created"),
        ("connection", "search", "created"),
        ("agent", "refund-desk", "created"),
    ]
    agent = Agent.objects.get(name="refund-desk")
    assert agent.credential.value == KEY
    assert [connection.name for connection in agent.connections.all()] == ["shop"]
    assert Connection.objects.get(name="shop").env == {"SHOP_DB": "shop.sqlite3", "PORT": "80"}
    refund = agent.policy_for("shop__issue_refund")
    assert (refund.effect, refund.permission, refund.risk) == ("write", "refunds.approve", "high")
    assert refund.deadline == timedelta(minutes=30)
    assert not agent.policy_for("shop__lookup_order").needs_approval
    assert agent.policy_for("shop__anything_else").needs_approval


def test_the_same_file_again_changes_nothing():
    load_agents(DESK, ENVIRON)
    policies = list(ToolPolicy.objects.values_list("pk", flat=True))
    again = load_agents(DESK, ENVIRON)
    assert {what for _, _, what in whats(again)} == {"unchanged"}
    assert Agent.objects.get().revision == 1
    assert list(ToolPolicy.objects.values_list("pk", flat=True)) == policies


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("You handle refunds.", "You handle refunds well."),
        ("deadline: 30m", "deadline: 45m"),
        ("connections: [shop]", "connections: [shop, search]"),
        ("      shop__lookup_order: {effect: read}\n", ""),
    ],
)
def test_a_changed_file_raises_the_agents_revision(old, new):
    load_agents(DESK, ENVIRON)
    report = load_agents(DESK.replace(old, new), ENVIRON)
    assert ("agent", "refund-desk", "changed") in whats(report)
    assert Agent.objects.get().revision == 2


def test_a_rotated_key_changes_the_credential():
    load_agents(DESK, ENVIRON)
    report = load_agents(DESK, {"OPENAI_KEY": "sk-another-secret-value"})
    assert whats(report)[0] == ("credential", "openai-main", "changed")
    assert Credential.objects.get().last_four == "alue"


def test_an_agent_that_was_switched_off_stays_off_unless_the_file_says_otherwise():
    load_agents(DESK, ENVIRON)
    Agent.objects.update(enabled=False)
    load_agents(DESK, ENVIRON)
    assert not Agent.objects.get().enabled


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("deadline: 30m", "deadline: soon", "tools.shop__issue_refund.approval.deadline: 'soon'"),
        ("deadline: 30m", "deadline: 0s", "approval.deadline: must be at least 1s"),
        ("risk: high", "risk: grave", "approval.risk: 'grave' means nothing here; use low, medium"),
        ("at_deadline: reject", "at_deadline: approve", "approval.at_deadline: A write never runs"),
        (
            "permission: refunds.approve",
            "permission: Refunds",
            "approval.permission: Use lower-case",
        ),
        ("effect: read", "effect: reed", "tools.shop__lookup_order.effect: 'reed' means nothing"),
        ("{effect: read}", "{}", "tools.shop__lookup_order.effect: is missing"),
        ("approval: {permission: tools", "aproval: {permission: tools", "did you mean approval?"),
        (
            "instructions:",
            "instruction:",
            "refund-desk.instruction: is not known here; did you mean",
        ),
        ("    model: demo:refund-desk\n", "", "agents.refund-desk.model: is missing"),
        ("demo:refund-desk", "gpt", "agents.refund-desk.model: Write provider:model"),
        ("demo:refund-desk", "demo:other", "There is no such demo model"),
        (
            "demo:refund-desk",
            "demo:script",
            "agents.refund-desk.settings.script: demo:script needs",
        ),
        ("[shop]", "[shopp]", "agents.refund-desk.connections: there is no connection called"),
        ("credential: openai-main", "credential: other", "there is no credential called “other”"),
        ("transport: http", "transport: tcp", "connections.search.transport: 'tcp' means nothing"),
        ("[python, -m, my_shop]", "python -m my_shop", "connections.shop.command: must be a list"),
        (
            'url: "http://127.0.0.1:9000/mcp"',
            "url: nowhere",
            "connections.search.url: Enter a valid",
        ),
        (
            "from_env: OPENAI_KEY",
            "value: sk-123",
            "credentials.openai-main.value: a secret does not",
        ),
        ("from_env: OPENAI_KEY", "from_env: UNSET", "environment variable UNSET is not set"),
        ("  search:", "  shop:", "“shop” occurs twice"),
        ("agents:", "agents: [", "This is not YAML"),
    ],
)
def test_a_fault_is_named_with_its_place_and_nothing_is_stored(old, new, error):
    assert old in DESK
    assert any(error in line for line in errors_of(DESK.replace(old, new, 1)))
    assert not Agent.objects.exists()
    assert not Connection.objects.exists()
    assert not Credential.objects.exists()


def test_every_fault_of_a_file_is_named_at_once():
    text = (
        DESK.replace("risk: high", "risk: x")
        .replace("30m", "y")
        .replace("effect: read", "effect: z")
    )
    assert len(errors_of(text)) == 3


def test_an_empty_file_says_what_it_needs():
    assert "it needs agents" in errors_of("")[0]


def test_a_secret_is_never_repeated_in_an_error():
    text = DESK.replace("from_env: OPENAI_KEY", f"value: {KEY}")
    assert KEY not in "\n".join(errors_of(text))


def test_a_script_is_judged_entry_by_entry():
    text = """
agents:
  scripted:
    model: demo:script
    settings: {script: [{text: Hello.}, {say: no}]}
"""
    assert any("agents.scripted.settings.script: Entry 2" in line for line in errors_of(text))


def test_words_and_dates_in_a_script_stay_the_text_they_are_written_as():
    load_agents(
        """
agents:
  scripted:
    model: demo:script
    settings:
      script:
        - calls:
          - tool: t__x
            args: {on: 2026-01-31, no: off, at: 12:30, id: 0123,
                   n: 12345678901234567890, x: 1.5, y: true}
"""
    )
    [entry] = Agent.objects.get().settings["script"]
    assert entry["calls"][0]["args"] == {
        "on": "2026-01-31",
        "no": "off",
        "at": "12:30",
        "id": "0123",
        "n": 12345678901234567890,
        "x": 1.5,
        "y": True,
    }


def test_a_model_nobody_heard_of_is_doubted_but_taken():
    report = load_agents("agents: {a: {model: 'openai:my-own-model'}}")
    assert "agents.a.model" in report.warnings[0]
    assert Agent.objects.get().model == "openai:my-own-model"


def test_a_policy_for_tools_the_agent_cannot_have_is_doubted():
    report = load_agents("agents: {a: {model: demo:refund-desk, tools: {shp__x: {effect: read}}}}")
    assert "no connection called shp" in report.warnings[0]


def test_the_command_says_what_it_did(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_KEY", KEY)
    file = tmp_path / "agents.yaml"
    file.write_text(DESK)
    out = StringIO()
    call_command("import_agents", str(file), stdout=out)
    assert "created agent refund-desk" in out.getvalue()
    assert KEY not in out.getvalue()


def test_the_command_refuses_with_every_fault(tmp_path):
    file = tmp_path / "agents.yaml"
    file.write_text("agents: {a: {modle: x}}")
    with pytest.raises(CommandError) as refused:
        call_command("import_agents", str(file))
    assert "agents.a.modle: is not known here; did you mean model?" in str(refused.value)


def test_the_command_names_a_file_it_cannot_read(tmp_path):
    with pytest.raises(CommandError, match="cannot be read"):
        call_command("import_agents", str(tmp_path / "none.yaml"))


STRICT = """
connections:
  shop:
    transport: stdio
    command: [python, -m, my_shop]
    tools:
      lookup_order: {effect: read}
      "*": {effect: write, approval: {permission: shop.approve}}
agents:
  desk:
    model: demo:refund-desk
    connections: [shop]
    tools:
      shop__issue_refund:
        effect: write
        approval:
          permission: refunds.approve
          deadline: 30m
          at_deadline: escalate
          approve_n: 2
          deny_m: 3
          four_eyes: true
          reason: {approve: true, reject: false}
          editable: true
          validity: 5m
          reminders: [10m, 2m]
          escalation: [{permission: refunds.lead, deadline: 15m}]
"""


def test_everything_that_an_approval_may_ask_for_can_be_written():
    load_agents(STRICT)
    policy = Agent.objects.get(name="desk").policy_for("shop__issue_refund")
    assert (policy.approve_n, policy.deny_m) == (2, 3)
    assert (policy.four_eyes, policy.editable) == (True, True)
    assert (policy.reason_on_approve, policy.reason_on_reject) == (True, False)
    assert (policy.at_deadline, policy.validity) == ("escalate", timedelta(minutes=5))
    assert policy.reminders == ["10m", "2m"]
    assert policy.escalation == [{"permission": "refunds.lead", "deadline": "15m"}]
    assert {change.what for change in load_agents(STRICT).changes} == {"unchanged"}


def test_arguments_may_be_edited_unless_the_policy_says_otherwise():
    load_agents(STRICT.replace("          editable: true\n", ""))
    assert Agent.objects.get(name="desk").policy_for("shop__issue_refund").editable
    load_agents(STRICT.replace("editable: true", "editable: false"))
    assert not Agent.objects.get(name="desk").policy_for("shop__issue_refund").editable


def test_a_connections_policies_hold_for_every_agent_that_uses_it():
    load_agents(STRICT)
    agent = Agent.objects.get(name="desk")
    assert not agent.policy_for("shop__lookup_order").needs_approval
    assert agent.policy_for("shop__send_email").permission == "shop.approve"
    other = Agent.objects.create(name="other", model="demo:refund-desk")
    assert other.policy_for("shop__lookup_order").needs_approval


def test_of_two_policies_the_more_specific_wins_and_then_the_agents_own():
    load_agents(STRICT)
    agent = Agent.objects.get(name="desk")
    agent.tools.create(pattern="*", permission="any.approve")
    assert not agent.policy_for("shop__lookup_order").needs_approval
    agent.tools.create(pattern="shop__*", permission="own.approve")
    assert agent.policy_for("shop__send_email").permission == "own.approve"
    agent.tools.create(pattern="shop__lookup_order", permission="looks.approve")
    assert agent.policy_for("shop__lookup_order").permission == "looks.approve"
    assert agent.policy_for("mail__send").permission == "any.approve"


def test_a_changed_policy_of_a_connection_is_a_change_of_the_connection():
    load_agents(STRICT)
    report = load_agents(STRICT.replace("shop.approve", "shop.lead"))
    assert [change.what for change in report.changes] == ["changed", "unchanged"]
    assert Connection.objects.get(name="shop").revision == 2


@pytest.mark.parametrize(
    ("written", "instead", "error"),
    [
        ("approve_n: 2", "approve_n: two", "approval.approve_n: must be a whole number"),
        ("approve_n: 2", "approve_n: 0", "approval.approve_n: Ensure this value is"),
        ("four_eyes: true", "four_eyes: 1", "approval.four_eyes: must be true or false"),
        ("approve: true", "approved: true", "approval.reason.approved: is not known here"),
        ("validity: 5m", "validity: soon", "approval.validity: 'soon' is not a duration"),
        ("[10m, 2m]", "[soon]", "approval.reminders: 'soon' is not a duration"),
        ("[10m, 2m]", "10m", "approval.reminders: must be a list"),
        ("[{permission: refunds.lead, deadline: 15m}]", "[]", "approval.escalation: Say who"),
        ("permission: refunds.lead", "permission: Lead", "approval.escalation: "),
    ],
)
def test_a_fault_in_an_approval_is_named_with_its_place(written, instead, error):
    assert written in STRICT
    errors = errors_of(STRICT.replace(written, instead))
    assert any(f"agents.desk.tools.shop__issue_refund.{error}" in line for line in errors), errors


TIMED = """
agents:
  desk:
    model: demo:refund-desk
    model_calls: {timeout: 20m, attempts: 5, backoff: 2s, schedule_to_start: 1h, heartbeat: 30s}
    tools:
      shop__print:
        effect: idempotent
        pool: printers
        timeout: 5m
        attempts: 4
        backoff: 3s
        schedule_to_start: 10s
        heartbeat: 20s
"""


def test_times_attempts_and_pools_can_be_written_for_model_calls_and_for_each_tool():
    load_agents(TIMED)
    agent = Agent.objects.get(name="desk")
    limits = limits_for(agent)
    assert (limits.model_timeout, limits.model_attempts, limits.model_backoff) == (1200, 5, 2)
    assert (limits.model_schedule_to_start, limits.model_heartbeat) == (3600, 30)
    policy = agent.policy_for("shop__print")
    assert policy.pool == "printers"
    assert tool_times(policy) == {
        "timeout": 300,
        "attempts": 4,
        "backoff": 3,
        "schedule_to_start": 10,
        "heartbeat": 20,
    }
    assert {change.what for change in load_agents(TIMED).changes} == {"unchanged"}


@pytest.mark.parametrize(
    ("written", "instead", "error"),
    [
        ("effect: idempotent", "effect: write", "tools.shop__print.attempts: A write is never run"),
        ("attempts: 4", "attempts: 21", "tools.shop__print.attempts: Ensure this value is"),
        ("pool: printers", "pool: a.model", "tools.shop__print.pool: Enter a valid"),
        ("heartbeat: 20s", "heartbeat: 0", "tools.shop__print.heartbeat: must be at least 1s"),
        ("attempts: 5", "attempts: 0", "model_calls.attempts: Ensure this value is"),
        ("backoff: 2s", "pause: 2s", "model_calls.pause: is not known here"),
    ],
)
def test_a_fault_in_times_and_attempts_is_named_with_its_place(written, instead, error):
    assert written in TIMED
    errors = errors_of(TIMED.replace(written, instead))
    assert any(line.startswith(f"agents.desk.{error}") for line in errors), errors


def test_whom_an_agent_may_delegate_to_must_be_there_or_in_the_file_even_further_down():
    file = "agents: {a: {model: demo:refund-desk, delegates: [%s]}, b: {model: demo:refund-desk}}"
    load_agents(file % "b", {})
    assert Agent.objects.get(name="a").delegates == ["b"]
    assert errors_of(file % "b, gone") == ["agents.a.delegates: there is no agent called “gone”"]
