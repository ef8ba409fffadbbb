"""The list of a server's tools is kept while it holds, and asked for anew when it may not."""

import pytest

from sessions_app.tools.mcp import ConnectionSpec

# By hand, since it speaks the protocol in which a server tells of a change unasked.
SERVER = """
import json, sys
asked, tools = sys.argv[1], ["grow"]
def say(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    method, number = request["method"], request.get("id")
    if method == "initialize":
        found = {"protocolVersion": "2025-06-18", "serverInfo": {"name": "odd", "version": "1"}}
        say(id=number, result={**found, "capabilities": {"tools": {"listChanged": True}}})
    elif method == "tools/list":
        with open(asked, "a") as log:
            log.write("asked ")
        schema = {"type": "object"}
        say(id=number, result={"tools": [{"name": n, "inputSchema": schema} for n in tools]})
    elif method == "tools/call":
        tools.append("shrink")
        say(method="notifications/tools/list_changed")
        say(id=number, result={"content": [{"type": "text", "text": "grown"}]})
    elif number is not None:
        say(id=number, error={"code": -32601, "message": "unknown"})
"""


@pytest.fixture
def odd(tmp_path):
    (tmp_path / "server.py").write_text(SERVER)
    return ConnectionSpec("odd", "stdio", ("python", f"{tmp_path}/server.py", f"{tmp_path}/asked"))


async def test_a_known_list_is_not_asked_for_again_until_the_server_tells_of_a_change(
    pool, odd, tmp_path
):
    for _ in range(3):
        assert [tool.tool for tool in await pool.known_tools(odd)] == ["grow"]
    assert asked(tmp_path) == 1

    await pool.call_tool(odd, "odd__grow", {}, "call-1")
    assert [tool.tool for tool in await pool.known_tools(odd)] == ["grow", "shrink"]


async def test_who_wants_the_list_as_it_is_now_always_asks(pool, odd, tmp_path):
    await pool.known_tools(odd)
    before = asked(tmp_path)
    await pool.list_tools(odd)
    assert asked(tmp_path) == before + 1


def asked(folder) -> int:
    return (folder / "asked").read_text().count("asked")
