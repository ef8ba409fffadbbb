"""A Chromium for the browser tests: find one, or get one (``python tests/browser.py``)."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

# A browser without windows does the same work for a third of the CPU, so it comes first.
NAMES = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
)


def find_chromium() -> str | None:
    """The path of a Chromium that starts, or None: one on PATH first, then Playwright's own."""
    on_path = (shutil.which(name) for name in NAMES)
    for candidate in (*on_path, *_playwrights_own()):
        if candidate and _starts(candidate):
            return candidate
    return None


def _playwrights_own() -> list[str]:
    given = os.environ.get("PLAYWRIGHT_BROWSERS_PATH", "")
    cache = Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache")
    root = Path(given) if given else cache / "ms-playwright"
    patterns = (
        "chromium_headless_shell-*/*/*headless*shell",
        "chromium-*/chrome-linux*/chrome",
        "chromium-*/chrome-mac*/*.app/Contents/MacOS/*",
    )
    return sorted((str(path) for pattern in patterns for path in root.glob(pattern)), reverse=True)


def _starts(program: str) -> bool:
    try:
        return (
            subprocess.run([program, "--version"], capture_output=True, timeout=30).returncode == 0
        )
    except (OSError, subprocess.TimeoutExpired):
        return False


def _ways() -> list[list[list[str]]]:
    """Each way to get one is a few commands, in the order to be tried."""
    ways = [[[sys.executable, "-m", "playwright", "install", "--only-shell", "chromium"]]]
    if os.geteuid() == 0 and shutil.which("apt-get"):
        install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends"]
        for package in ("chromium-headless-shell", "chromium"):
            ways.append([["apt-get", "update", "-qq"], [*install, package]])
    return ways


def _run(command: list[str]) -> bool:
    print("  " + " ".join(command), flush=True)
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(
            command, env=env, timeout=600, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        print(f"  … {error}")
        return False
    if done.returncode:
        print(f"  … exit code {done.returncode}: {done.stderr.strip()[-300:]}")
    return done.returncode == 0


def get_chromium() -> str | None:
    """One that is there, else one installed now, else None."""
    found = find_chromium()
    if found:
        return found
    print("No Chromium is installed; getting one for the browser tests …", flush=True)
    for way in _ways():
        if all(_run(command) for command in way) and (found := find_chromium()):
            return found
    return None


if __name__ == "__main__":
    browser = get_chromium()
    if browser:
        print(f"Browser tests use {browser}")
    else:
        print("The tests marked e2e will be skipped: no Chromium was found or could be installed.")
