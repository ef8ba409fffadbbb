from decimal import Decimal
from pathlib import Path

import pytest
import pytest_asyncio

from sessions_app.tools import results
from sessions_app.tools.mcp import ConnectionSpec, ToolPool

pytestmark = pytest.mark.asyncio(loop_scope="module")

SERVER = Path(__file__).with_name("odd_server.py")
SECRET = "odd-key-abcdef-987654"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool():
    """One for all these tests, so that the server is started once for each spec."""
    pool = ToolPool()
    yield pool
    await pool.aclose()


def odd(**options) -> ConnectionSpec:
    return ConnectionSpec("odd", "stdio", ("python", str(SERVER)), **options)


async def environment_of(pool, spec: ConnectionSpec) -> dict[str, str]:
    return (await pool.call_tool(spec, "odd__environment", {}, "c")).structured


async def test_a_child_gets_a_small_environment_and_none_of_our_secrets(pool, monkeypatch):
    for name in ("DEXWEB_SECRET_KEY", "DJANGO_SETTINGS_MODULE", "OPENAI_API_KEY", "DATABASE_URL"):
        monkeypatch.setenv(name, "ours alone")
    seen = await environment_of(pool, odd(env={"MODE": "test"}))
    assert seen["MODE"] == "test"
    assert "PATH" in seen
    assert "ours alone" not in seen.values()
    assert "DEXWEB_CREDENTIAL" not in seen


async def test_a_secret_goes_where_its_placeholder_stands_or_to_its_own_variable(pool):
    # The tool's answer is cleaned of the secret, so what is seen is where it was hidden.
    placed = await pool.call_tool(
        odd(env={"TOKEN": "Token ${credential}"}, secret=SECRET), "environment", {}, "c"
    )
    assert '"TOKEN": "Token [hidden]"' in placed.text
    assert "DEXWEB_CREDENTIAL" not in placed.text
    own = await pool.call_tool(odd(secret=SECRET), "environment", {}, "c")
    assert '"DEXWEB_CREDENTIAL": "[hidden]"' in own.text
    assert SECRET not in own.text + str(own.structured)


async def test_progress_of_a_tool_is_told_as_it_comes(pool):
    told = []

    async def on_progress(done, total, words):
        told.append((done, total, words))

    await pool.call_tool(odd(), "counts", {}, "c", on_progress)
    assert told == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")]


async def test_binary_parts_are_described_in_words(pool):
    result = await pool.call_tool(odd(), "picture", {}, "c")
    assert "Here it is." in result.text
    assert "[An image, image/png, 1 KiB, is not shown here.]" in result.text


async def test_a_result_too_long_is_cut_between_characters(pool, monkeypatch):
    monkeypatch.setattr(results, "MAX_RESULT_BYTES", 1001)
    result = await pool.call_tool(odd(), "long", {"characters": 1000}, "c")
    assert result.truncated
    assert result.text == "ä" * 500
    assert not (await pool.call_tool(odd(), "long", {"characters": 10}, "c")).truncated


async def test_a_result_of_two_mebibytes_comes_whole(pool):
    result = await pool.call_tool(odd(), "long", {"characters": 1024 * 1024}, "c")
    assert len(result.text) == 1024 * 1024 and not result.truncated


async def test_a_tool_named_as_no_provider_takes_it_gets_a_name_they_take(pool):
    (tool,) = [each for each in await pool.list_tools(odd()) if each.tool.startswith("with.dots")]
    assert len(tool.name) <= 64
    assert tool.name.replace("_", "").replace("-", "").isalnum()
    assert "found" in (await pool.call_tool(odd(), tool.name, {}, "c")).text
    fresh = odd(env={"MODE": "never listed"})
    assert "found" in (await pool.call_tool(fresh, tool.name, {}, "c")).text


@pytest.mark.parametrize("value", [12345678901234567890123, Decimal("7")])
async def test_whole_numbers_arrive_exactly(pool, value):
    assert str(value) in (await pool.call_tool(odd(), "echo", {"value": value}, "c")).text
