import asyncio
import os
import threading
import time
from pathlib import Path

import pytest
from django.core.cache.backends.locmem import LocMemCache

from sessions_app.graph import program, render
from sessions_app.graph.checks import check_layout_program, name_layout_program
from sessions_app.graph.dot import to_dot
from sessions_app.graph.model import as_list
from sessions_app.graph.program import layout_program
from sessions_app.graph.render import LayoutUnavailable, render_svg, render_svg_sync
from sessions_app.graph.service import part_view, part_view_async
from tests.sessions_app.graph.build import fan, only_part, step

DRAWING = "cat > /dev/null; echo '<svg><text>drawn</text></svg>'"


def calls_in(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


@pytest.fixture
def no_program(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(program, "_wheel_program", lambda: None)


# Drawn once


def test_a_drawing_is_made_once_and_found_again(fake_program):
    calls = fake_program(DRAWING)
    first = render_svg_sync("digraph {}")
    assert render_svg_sync("digraph {}") == first
    assert "drawn" in first
    assert len(calls_in(calls)) == 1


def test_another_drawing_is_made_for_itself(fake_program):
    calls = fake_program(DRAWING)
    render_svg_sync("digraph {a}")
    render_svg_sync("digraph {b}")
    assert len(calls_in(calls)) == 2


def test_viewers_who_come_at_the_same_time_share_one_drawing(fake_program):
    calls = fake_program(f"sleep 0.3; {DRAWING}")

    async def viewers() -> list[str]:
        return await asyncio.gather(*(render_svg("digraph {}") for _ in range(20)))

    assert len(set(asyncio.run(viewers()))) == 1
    assert len(calls_in(calls)) == 1


def test_simultaneous_viewers_share_a_drawing_even_where_nothing_is_cached(fake_program, settings):
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}}
    calls = fake_program(f"sleep 0.5; {DRAWING}")
    threads = [threading.Thread(target=render_svg_sync, args=["digraph {}"]) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls_in(calls)) == 1


def test_no_more_than_two_layouts_run_at_once(fake_program, tmp_path):
    (tmp_path / "running").mkdir()
    calls = fake_program(
        f"touch {tmp_path}/running/$$; ls {tmp_path}/running | wc -l >> {tmp_path}/seen; "
        f"sleep 0.1; rm {tmp_path}/running/$$; {DRAWING}"
    )

    async def many() -> None:
        await asyncio.gather(*(render_svg(f"digraph {{n{n}}}") for n in range(6)))

    asyncio.run(many())
    assert len(calls_in(calls)) == 6
    assert max(int(line) for line in (tmp_path / "seen").read_text().split()) <= 2


def test_a_change_of_state_draws_nothing_anew(fake_program):
    calls = fake_program(DRAWING)
    part_view(only_part(step("RunModel-1", status="active")))
    part_view(only_part(step("RunModel-1", status="completed")))
    assert len(calls_in(calls)) == 1


# Stopped and refused


@pytest.mark.parametrize("body", ["sleep 300 & sleep 300; wait", "sleep 300 & exit 0"])
def test_a_layout_over_its_time_is_killed_with_all_it_started(fake_program, settings, body):
    settings.DEXWEB_LAYOUT_TIMEOUT = 0.3
    calls = fake_program(body)
    with pytest.raises(LayoutUnavailable, match=r"took longer than 0\.3 s and was stopped"):
        render_svg_sync("digraph {}")
    group = int(calls_in(calls)[0].split()[0])
    assert _is_gone(group)


def _is_gone(group: int) -> bool:
    """Killed children wait a moment for whoever reaps them."""
    for _ in range(200):
        if not any(_in_group(stat, group) for stat in Path("/proc").glob("[0-9]*/stat")):
            return True
        time.sleep(0.02)
    return False


def _in_group(stat: Path, group: int) -> bool:
    try:
        state, _, process_group = stat.read_text().rpartition(")")[2].split()[:3]
    except OSError:
        return False
    return int(process_group) == group and state != "Z"


def test_a_refusal_is_remembered_so_that_viewers_do_not_wait_it_out_again(fake_program, settings):
    settings.DEXWEB_LAYOUT_TIMEOUT = 0.2
    calls = fake_program("sleep 300")
    for _ in range(3):
        with pytest.raises(LayoutUnavailable, match="was stopped"):
            render_svg_sync("digraph {}")
    assert len(calls_in(calls)) == 1


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("echo 'secret detail' >&2; exit 3", "failed with status 3"),
        ("kill -SEGV $$", "failed with status -11"),
        ("echo 'no drawing'", "not well-formed"),
        ("echo '<!DOCTYPE svg [<!ENTITY a \"b\">]><svg/>'", "document type"),
    ],
)
def test_a_broken_program_is_a_reason_in_words(fake_program, body, reason):
    fake_program(body)
    with pytest.raises(LayoutUnavailable, match=reason) as caught:
        render_svg_sync("digraph {}")
    assert "secret" not in caught.value.reason


def test_a_file_that_cannot_run_is_a_reason_in_words(tmp_path, settings):
    script = tmp_path / "layout"
    script.write_bytes(b"\x7fELF, but not really")
    script.chmod(0o755)
    settings.DEXWEB_DOT = str(script)
    with pytest.raises(LayoutUnavailable, match="did not start"):
        render_svg_sync("digraph {}")


def test_what_is_too_large_is_refused_before_any_program_runs(fake_program):
    calls = fake_program(DRAWING)
    with pytest.raises(LayoutUnavailable, match="too large"):
        render_svg_sync("x" * (render.MAX_DOT_BYTES + 1))
    with pytest.raises(LayoutUnavailable, match="too large"):
        render_svg_sync("\n" * 5000)
    assert calls_in(calls) == []


def test_a_part_with_too_many_edges_says_so_with_its_size(fake_program):
    calls = fake_program(DRAWING)
    before: tuple[str, ...] = ()
    steps = []
    for n in range(80):
        steps.append(step(f"CallTool-{n}", tool=f"shop__{n}", causes=before))
        before = (*before, f"CallTool-{n}")
    view = part_view(only_part(*steps))
    assert view.reason == "this part has 80 nodes and 3,160 edges; at most 400 and 1,500 are drawn"
    assert calls_in(calls) == []


def test_the_program_sees_none_of_our_secrets(fake_program, tmp_path, monkeypatch):
    monkeypatch.setenv("DEXWEB_SECRET_KEY", "hush")
    fake_program(f"env > {tmp_path}/environment; {DRAWING}")
    render_svg_sync("digraph {}")
    assert "hush" not in (tmp_path / "environment").read_text()


# What a page gets


def test_a_page_gets_the_drawing_with_its_state(real_program):
    view = part_view(only_part(*fan(2, status="active")))
    assert view.reason == ""
    assert view.svg.count('class="node s-run"') == 2


def test_a_page_gets_the_drawing_from_async_code_too(real_program):
    part = only_part(*fan(2))
    assert asyncio.run(part_view_async(part)) == part_view(part)


def test_without_a_program_a_page_gets_the_list_and_the_reason(no_program):
    part = only_part(*fan(2))
    view = part_view(part)
    assert view.svg is None
    assert view.reason.startswith("no layout program: there is no dot on PATH")
    assert view.rows == tuple(as_list(part))


def test_a_page_stands_even_if_the_cache_is_down(real_program, monkeypatch):
    def down(*_):
        raise ConnectionError("cache")

    monkeypatch.setattr(LocMemCache, "get", down)
    view = part_view(only_part(*fan(2)))
    assert view.svg is None
    assert view.reason == "the graph could not be drawn; the log says why"
    assert len(view.rows) == 4


def test_installing_a_program_helps_at_once(no_program, fake_program, settings):
    part = only_part(step("RunModel-1"))
    assert part_view(part).svg is None
    fake_program("/bin/cat > /dev/null; echo '<svg><text>drawn</text></svg>'")
    assert "drawn" in part_view(part).svg


# Which program


def test_the_configured_program_comes_first(fake_program, settings):
    fake_program(DRAWING)
    found = layout_program()
    assert found.path == settings.DEXWEB_DOT
    assert found.source.endswith("from DEXWEB_DOT")


def test_a_wrong_configuration_is_reported_and_not_passed_over(settings):
    settings.DEXWEB_DOT = "/nowhere/dot"
    found = layout_program()
    assert found.path is None
    assert found.source == "DEXWEB_DOT names /nowhere/dot, which is not a program here"


def test_dot_on_the_path_comes_before_the_wheel(tmp_path, monkeypatch):
    dot = tmp_path / "dot"
    dot.write_text("#!/bin/sh\n")
    dot.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert layout_program().source == f"{dot}, dot on PATH"


def test_the_wheel_serves_where_no_dot_is_installed(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    found = layout_program()
    assert found.source == f"{found.path}, from the graphviz-pure package"
    assert os.access(found.path, os.X_OK)


def test_the_system_check_says_which_program_is_used(fake_program, settings):
    fake_program(DRAWING)
    (message,) = name_layout_program(None)
    assert message.id == "dexweb.graph.I001"
    assert settings.DEXWEB_DOT in message.msg
    assert check_layout_program(None) == []


def test_the_system_check_warns_that_there_is_none(no_program):
    (message,) = check_layout_program(None)
    assert message.id == "dexweb.graph.W001"
    assert "shown as lists" in message.msg


def test_dot_and_drawing_agree_for_a_whole_part(real_program):
    part = only_part(*fan(5))
    svg = render_svg_sync(to_dot(part))
    assert all(f'<g id="{node.id}" class="node">' in svg for node in part.nodes)
