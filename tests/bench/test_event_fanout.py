"""`make bench` measures the stream in processes of its own."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.bench
def test_measure_event_fanout() -> None:
    script = Path(__file__).with_name("event_fanout.py")
    subprocess.run([sys.executable, str(script)], check=True)
