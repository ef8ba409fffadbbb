"""Which program lays graphs out: the configured one, `dot`, or the one that a wheel brings."""

import functools
import importlib.metadata
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

WHEEL = "graphviz-pure"


@dataclass(frozen=True)
class LayoutProgram:
    """`path` is None when there is none; `source` says in words where it comes from, or why not."""

    path: str | None
    source: str


def layout_program() -> LayoutProgram:
    """DEXWEB_DOT if it is set, else `dot` on PATH, else the wheel's program. A wrong DEXWEB_DOT is
    reported, not passed over."""
    configured = getattr(settings, "DEXWEB_DOT", os.environ.get("DEXWEB_DOT", ""))
    if configured:
        path = shutil.which(str(configured))
        if path is None:
            return LayoutProgram(
                None, f"DEXWEB_DOT names {configured}, which is not a program here"
            )
        return LayoutProgram(path, f"{path}, from DEXWEB_DOT")
    if path := shutil.which("dot"):
        return LayoutProgram(path, f"{path}, dot on PATH")
    if path := _wheel_program():
        return LayoutProgram(path, f"{path}, from the {WHEEL} package")
    return LayoutProgram(
        None, f"there is no dot on PATH, {WHEEL} is not installed and DEXWEB_DOT is not set"
    )


@functools.cache
def _wheel_program() -> str | None:
    try:
        files = importlib.metadata.files(WHEEL) or []
    except importlib.metadata.PackageNotFoundError:
        return None
    for file in files:
        if file.name in (WHEEL, f"{WHEEL}.exe"):
            return shutil.which(Path(str(file.locate())).resolve())
    return None
