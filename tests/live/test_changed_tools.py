"""A tool or an agent that was changed while its call waited: what was approved is not run on it."""

import subprocess
from pathlib import Path

import pytest
import yaml

from sessions_app.agents_yaml import load_agents
from sessions_app.models import Agent, Credential
from tests.live.conftest import Live
from tests.sessions_app.llm.provider import Provider, chat

pytestmark = pytest.mark.usefixtures("standing_worker")

SERVER = """
import pathlib, sys
from mcp.server import MCPServer
server = MCPServer("pay")
log = pathlib.Path(sys.argv[1]) / "ran"
if (pathlib.Path(sys.argv[1]) / "changed").exists():
    @server.tool()
    def pay(amount: float, currency: str = "EUR") -> str:
        log.write_text("ran")
        return "paid"
else:
    @server.tool()
    def pay(amount: float) -> str:
        log.write_text("ran")
        return "paid"
server.run("stdio")
"""


def pay_desk(live: Live, folder: Path) -> None:
    (folder / "server.py").write_text(SERVER)
    connection = {"transport": "stdio", "command": ["python", f"{folder}/server.py", str(folder)]}
    agent = {
        "model": "demo:script",
        "connections": ["pay"],
        "pool": "standing",
        "tools": {
            "pay__pay": {"effect": "idempotent", "approval": {"permission": "refunds.approve"}}
        },
        "settings": {
            "word_delay": 0,
            "script": [
                {"calls": [{"tool": "pay__pay", "args": {"amount": 5}}]},
                {"text": "Over."},
            ],
        },
    }
    load_agents(yaml.safe_dump({"connections": {"pay": connection}, "agents": {"desk": agent}}))


def test_a_tool_whose_schema_changed_while_its_call_waited_does_not_run(
    live: Live, tmp_path: Path
) -> None:
    pay_desk(live, tmp_path)
    boss = live.person("boss", "refunds.approve")
    session = live.start(boss)
    interrupt = live.ask(session)
    (tmp_path / "changed").touch()
    restart_server(tmp_path)
    live.decide(boss, interrupt)
    live.idle(session)

    call = session.calls.get()
    assert call.outcome == "invalidated"
    assert "was changed by its server" in call.words
    assert not (tmp_path / "ran").exists()


def test_a_tool_that_is_as_it_was_runs(live: Live, tmp_path: Path) -> None:
    pay_desk(live, tmp_path)
    boss = live.person("boss", "refunds.approve")
    session = live.start(boss)
    live.decide(boss, live.ask(session))
    live.idle(session)
    assert session.calls.get().outcome == "completed"
    assert (tmp_path / "ran").exists()


def restart_server(folder: Path) -> None:
    """End the warm server, as an upgrade of it would."""
    subprocess.run(["pkill", "-f", f"{folder}/server.py"], check=False)


def test_a_disabled_agent_runs_neither_its_model_nor_what_was_approved(
    live: Live, tmp_path: Path
) -> None:
    pay_desk(live, tmp_path)
    boss = live.person("boss", "refunds.approve")
    session = live.start(boss)
    interrupt = live.ask(session)
    Agent.objects.update(enabled=False)
    live.decide(boss, interrupt)
    live.idle(session)

    assert session.calls.get().outcome == "failed"
    assert "disabled" in session.calls.get().words
    assert "disabled" in session.turns.get().detail
    assert not (tmp_path / "ran").exists()


def test_a_model_that_repeats_its_own_key_is_not_quoted(live: Live) -> None:
    key = "sk-live-repeated-0123456789"
    provider = Provider()
    live.agent([{"text": "unused"}], pool="standing")
    credential = Credential.objects.create(name="main", value=key, base_url=provider.address)
    Agent.objects.update(model="openai:gpt-4o", credential=credential, settings={})
    provider.streams(*chat({"content": f"My key is {key}."}))
    session = live.idle(live.start(live.person("ann")))
    provider.close()

    step = session.steps.get(step_id="RunModel-1")
    assert step.text == "My key is [hidden]."
    assert key not in str(step.response)
    assert not session.events.filter(payload__icontains=key).exists()
