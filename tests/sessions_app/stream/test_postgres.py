"""The same promises on PostgreSQL, where commits are heard of by LISTEN and NOTIFY."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

PROMISES = ["test_live.py", "test_replay.py"]

if settings.DATABASES["default"]["ENGINE"].endswith("postgresql"):
    pytest.skip("this is the run on PostgreSQL", allow_module_level=True)


def test_the_stream_keeps_its_promises_on_postgresql(postgres_url: str) -> None:
    outer = {"DJANGO_SETTINGS_MODULE", "DATABASE_URL", "DEXWEB_VAR"}  # the run we are in
    kept = {name: value for name, value in os.environ.items() if name not in outer}
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--create-db", *PROMISES],
        cwd=Path(__file__).parent,
        env=kept | {"DEXWEB_TEST_DATABASE_URL": postgres_url},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-2000:]
