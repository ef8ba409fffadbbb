from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.cache import cache

from sessions_app.graph.program import layout_program


@pytest.fixture(autouse=True)
def own_cache(settings):
    """Nothing drawn by one test is found by the next."""
    settings.CACHES = {
        "default": {
            "BACKEND": "django.core.cache.backends.locmem.LocMemCache",
            "LOCATION": "graph-tests",
        }
    }
    settings.DEXWEB_DOT = ""
    settings.DEXWEB_LAYOUT_TIMEOUT = 20
    cache.clear()
    yield
    cache.clear()


@pytest.fixture
def real_program() -> str:
    path = layout_program().path
    if path is None:
        pytest.skip("no layout program on this machine")
    return path


@pytest.fixture
def fake_program(tmp_path: Path, settings) -> Callable[[str], Path]:
    """Makes a shell script the layout program; each of its calls is a line of the file it gives."""

    def make(body: str) -> Path:
        calls = tmp_path / "calls"
        script = tmp_path / "layout"
        script.write_text(f'#!/bin/sh\necho "$$ $*" >> "{calls}"\n{body}\n')
        script.chmod(0o755)
        settings.DEXWEB_DOT = str(script)
        return calls

    return make
