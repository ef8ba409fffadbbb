import asyncio
import json
import os
import signal
import sys
import time

import pytest

from sessions_app.tools.mcp import (
    ConnectionLost,
    ConnectionSpec,
    ConnectionUnavailable,
    ToolPool,
    ToolRaised,
    ToolTimedOut,
    call_tool,
    list_tools,
)

SECRET = "shop-key-abcdef-987654"
REFUND = {"order_id": "A-1042", "amount": 10, "currency": "EUR", "reason": "late"}


async def eventually(condition, within: float = 20.0) -> None:
    end = time.monotonic() + within
    while not condition():
        assert time.monotonic() < end, "it never came"
        await asyncio.sleep(0.02)


async def test_tools_come_with_full_names_schemas_and_hints(shop):
    tools = {tool.name: tool for tool in await list_tools(shop.spec())}
    assert set(tools) == {
        "shop__lookup_order",
        "shop__search_policy",
        "shop__issue_refund",
        "shop__send_email",
    }
    refund = tools["shop__issue_refund"]
    assert (refund.tool, refund.connection) == ("issue_refund", "shop")
    assert refund.schema["properties"]["amount"]["type"] == "number"
    assert refund.destructive_hint is True
    assert tools["shop__lookup_order"].read_only_hint is True


async def test_one_call_leaves_no_process_behind(shop, started):
    result = await call_tool(shop.spec(), "shop__lookup_order", {"order_id": "A-1042"}, "call-1")
    order = json.loads(result.text)
    assert (order["paid"], order["currency"], order["days_late"]) == (184.9, "EUR", 9)
    assert order["days_since_delivery"] <= 14
    assert shop.rows("SELECT call_id, order_id FROM lookups") == [("call-1", "A-1042")]
    assert not started()


async def test_a_tools_own_error_is_raised_in_its_words(shop, pool):
    with pytest.raises(ToolRaised, match="There is no order A-1"):
        await pool.call_tool(shop.spec(), "shop__lookup_order", {"order_id": "A-1"}, "c")
    with pytest.raises(ToolRaised, match=r"At most 184\.90 EUR"):
        await pool.call_tool(shop.spec(), "issue_refund", REFUND | {"amount": 200}, "c")
    assert shop.rows("SELECT * FROM refunds") == []


async def test_parallel_calls_start_one_process_and_do_not_wait_for_each_other(shop, pool, started):
    spec = shop.spec("lookup_order=500ms")
    began = time.monotonic()
    calls = [
        pool.call_tool(spec, "shop__lookup_order", {"order_id": "A-1042"}, f"call-{number}")
        for number in range(10)
    ]
    await asyncio.gather(*calls)
    assert time.monotonic() - began < 4
    assert len(started()) == 1
    assert len(shop.rows("SELECT * FROM lookups")) == 10


def test_connections_of_different_secrets_are_not_shared(shop):
    assert shop.spec(secret="one").key() != shop.spec(secret="two").key()
    assert shop.spec(secret="one").key() == shop.spec(secret="one").key()


async def test_the_same_call_id_sends_one_email(shop, pool):
    email = {"to": "a@example.com", "subject": "Hello", "body": "World"}
    first = await pool.call_tool(shop.spec(), "send_email", email, "call-1")
    again = await pool.call_tool(shop.spec(), "send_email", email, "call-1")
    other = await pool.call_tool(shop.spec(), "send_email", email, "call-2")
    assert first.structured["email_id"] == again.structured["email_id"]
    assert again.structured["already_sent"] and not other.structured["already_sent"]
    assert len(shop.rows("SELECT * FROM emails")) == 2


async def test_each_execution_of_a_refund_is_a_row(shop, pool):
    for _ in range(2):
        await pool.call_tool(shop.spec(), "issue_refund", REFUND, "call-1")
    rows = shop.rows("SELECT call_id, amount, status FROM refunds")
    assert rows == [("call-1", "10.00", "done")] * 2


async def test_a_server_killed_in_mid_call_is_lost_and_the_next_call_works(shop, pool, started):
    spec = shop.spec("issue_refund=30s")
    call = asyncio.create_task(pool.call_tool(spec, "issue_refund", REFUND, "call-1"))
    await eventually(lambda: shop.rows("SELECT * FROM refunds WHERE status = 'begun'"))
    (server,) = started()
    os.kill(server, signal.SIGKILL)
    with pytest.raises(ConnectionLost):
        await asyncio.wait_for(call, 5)
    await pool.call_tool(spec, "lookup_order", {"order_id": "A-1042"}, "call-2")
    assert shop.rows("SELECT status FROM refunds") == [("begun",)]


async def test_a_server_that_died_while_idle_is_started_again_unnoticed(shop, pool, started):
    await pool.list_tools(shop.spec())
    (server,) = started()
    os.kill(server, signal.SIGKILL)
    await eventually(lambda: server not in started())
    await asyncio.sleep(0.05)
    await pool.call_tool(shop.spec(), "issue_refund", REFUND, "call-1")
    assert len(shop.rows("SELECT * FROM refunds")) == 1


@pytest.mark.parametrize("pooled", [True, False])
async def test_canceling_a_call_ends_the_servers_process(shop, pool, started, pooled):
    spec = shop.spec("issue_refund=30s")
    call = (pool.call_tool if pooled else call_tool)(spec, "issue_refund", REFUND, "call-1")
    task = asyncio.create_task(call)
    await eventually(lambda: shop.rows("SELECT * FROM refunds"))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 5)
    await eventually(lambda: not started())
    assert shop.rows("SELECT status FROM refunds") == [("begun",)]


async def test_canceling_while_the_server_starts_leaves_no_process(started):
    spec = ConnectionSpec("slow", "stdio", ("python", "-c", "import time; time.sleep(60)"))
    task = asyncio.create_task(call_tool(spec, "anything", {}, "call-1"))
    await eventually(started)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await eventually(lambda: not started())


async def test_canceling_one_call_lets_others_on_the_connection_finish(shop, pool, started):
    spec = shop.spec("issue_refund=30s,lookup_order=1s")
    await pool.list_tools(spec)
    canceled = asyncio.create_task(pool.call_tool(spec, "issue_refund", REFUND, "call-1"))
    other = asyncio.create_task(
        pool.call_tool(spec, "lookup_order", {"order_id": "A-1042"}, "call-2")
    )
    await eventually(lambda: shop.rows("SELECT * FROM refunds"))
    canceled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await canceled
    assert "A-1042" in (await other).text
    await eventually(lambda: not started())


async def test_a_call_that_takes_too_long_times_out_as_lost(shop, pool, started):
    with pytest.raises(ToolTimedOut) as caught:
        await pool.call_tool(
            shop.spec("issue_refund=30s"), "issue_refund", REFUND, "call-1", timeout=0.3
        )
    assert isinstance(caught.value, ConnectionLost)
    assert "0.3 seconds" in caught.value.message
    await eventually(lambda: not started())


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("no-such-program-here",), "There is no program 'no-such-program-here'"),
        (("/no/such/file",), "No such file"),
        (("python", "-c", "raise SystemExit('the licence ran out')"), "the licence ran out"),
        ((), "no command"),
    ],
)
async def test_a_server_that_does_not_start_says_why_and_nothing_ran(pool, command, words):
    with pytest.raises(ConnectionUnavailable, match=words):
        await pool.call_tool(ConnectionSpec("bad", "stdio", command), "tool", {}, "call-1")


async def test_the_secret_of_a_server_is_in_no_error_and_no_repr(pool):
    echo = "import os, sys; sys.exit('refused ' + os.environ['DEXWEB_CREDENTIAL'])"
    spec = ConnectionSpec("bad", "stdio", ("python", "-c", echo), secret=SECRET)
    with pytest.raises(ConnectionUnavailable) as caught:
        await pool.list_tools(spec)
    assert "refused [hidden]" in caught.value.message
    assert SECRET not in repr(caught.value) + repr(spec)


async def test_idle_connections_are_closed(shop, started):
    pool = ToolPool(idle_seconds=0.2)
    await pool.list_tools(shop.spec())
    assert started()
    await eventually(lambda: not started())
    await pool.aclose()


async def test_a_closed_pool_takes_no_calls(shop, pool):
    await pool.aclose()
    with pytest.raises(ConnectionUnavailable):
        await pool.list_tools(shop.spec())


async def test_a_server_of_another_maker_works_by_its_bare_name(pool):
    spec = ConnectionSpec("clock", "stdio", ("mcp-server-time", "--local-timezone", "UTC"))
    assert "clock__get_current_time" in [tool.name for tool in await pool.list_tools(spec)]
    result = await pool.call_tool(spec, "clock__get_current_time", {"timezone": "UTC"}, "c")
    assert json.loads(result.text)["timezone"] == "UTC"
    with pytest.raises(ToolRaised, match="Nowhere"):
        await pool.call_tool(spec, "clock__get_current_time", {"timezone": "Nowhere"}, "c")


def test_the_shop_does_not_import_django():
    code = "import sys, sessions_app.tools.shop.server; print('django' in sys.modules)"
    import subprocess

    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"
