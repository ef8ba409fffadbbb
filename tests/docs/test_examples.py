"""The documentation is true: its links lead somewhere and its examples do what they say."""

import re
from pathlib import Path

import pytest
from django.conf import settings
from django.core.checks import run_checks

from sessions_app.agents_yaml import load_agents
from sessions_app.models import Agent
from sessions_app.tools.mcp import ConnectionSpec, ToolPool

ROOT = Path(settings.BASE_DIR)
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
KEYS = {"OPENAI_API_KEY": "sk-0123456789", "STORE_KEY": "store-0123456789"}


def blocks(page: str, language: str) -> list[str]:
    """The code blocks of a page in ``language``, in their order."""
    text = (ROOT / page).read_text()
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if target.startswith(("http:", "https:")):
            continue
        name, _, anchor = target.partition("#")
        there = (page.parent / name).resolve() if name else page
        assert there.exists(), target
        assert not anchor or anchor in anchors(there), target


def test_every_page_is_linked_from_the_readme():
    readme = (ROOT / "README.md").read_text()
    for page in PAGES[1:]:
        assert f"({page.relative_to(ROOT)})" in readme, page.name


@pytest.mark.django_db
def test_the_agents_of_the_page_can_be_imported_in_their_order_without_a_note(monkeypatch):
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    load_agents("credentials: {my-model: {from_env: OPENAI_API_KEY}}")
    for text in [*blocks("docs/agents.md", "yaml"), *blocks("docs/limits.md", "yaml")]:
        assert load_agents(text).warnings == []
    assert Agent.objects.get(name="word-desk").model.startswith("openai:")


@pytest.mark.parametrize("page", ["docs/agents.md", "docs/outcomes.md"])
async def test_the_tool_servers_of_the_pages_serve_tools(page, tmp_path):
    (tmp_path / "server.py").write_text(blocks(page, "python")[0])
    spec = ConnectionSpec(
        name="own", transport="stdio", command=("python", str(tmp_path / "server.py"))
    )
    pool = ToolPool()
    try:
        found = {tool.tool for tool in await pool.list_tools(spec)}
        if "issue_refund" in found:
            call = ("own__issue_refund", {"order_id": "A-1"}, "call-1")
            first, again = [await pool.call_tool(spec, *call, _quiet, 10) for _ in range(2)]
            assert "refunded A-1" in first.text == again.text
    finally:
        await pool.aclose()
    assert found in ({"count_letters", "publish"}, {"issue_refund"})


async def _quiet(*progress: object) -> None:
    pass


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_variable_that_is_named_is_one_that_is_read(page):
    read = "".join(path.read_text() for path in ROOT.glob("dexweb/**/*.py"))
    read += "".join(path.read_text() for path in ROOT.glob("sessions_app/**/*.py"))
    for name in set(re.findall(r"\bDEXWEB_[A-Z_]*[A-Z]\b", page.read_text())):
        own = name == "DEXWEB_TOKEN" or name == "DEXWEB_TEST_DATABASE_URL"
        assert own or name in read, name


def test_a_command_says_nothing_about_the_installation_unless_it_is_asked():
    assert [message.id for message in run_checks() if message.id == "dexweb.graph.I001"] == []
