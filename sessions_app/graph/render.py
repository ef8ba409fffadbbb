"""DOT to SVG: one bounded subprocess per distinct drawing, shared by all who look at it."""

import hashlib
import logging
import os
import signal
import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from asgiref.sync import sync_to_async
from django.conf import settings
from django.core.cache import cache

from sessions_app.graph.model import GraphPart
from sessions_app.graph.program import LayoutProgram, layout_program
from sessions_app.graph.svg import UnsafeSvg, apply_state, sanitise_svg

__all__ = [
    "LayoutProgram",
    "LayoutUnavailable",
    "apply_state",
    "check_size",
    "layout_program",
    "render_svg",
    "render_svg_sync",
    "sanitise_svg",
]

logger = logging.getLogger(__name__)

LAYOUTS_AT_ONCE = 2
MAX_NODES = 400
MAX_EDGES = 1500
MAX_DOT_BYTES = 256 * 1024
MAX_SVG_BYTES = 8 * 1024 * 1024
CACHE_SECONDS = 7 * 24 * 3600
REFUSAL_SECONDS = 30
# Part of every cache key: raise it when DOT attributes stay equal but the cleaned SVG changes.
DRAWING_VERSION = 1
# The program needs to find its files and fonts, and none of our secrets.
PASSED_ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "GVBINDIR", "SYSTEMROOT")

_slots = threading.BoundedSemaphore(LAYOUTS_AT_ONCE)
threads = ThreadPoolExecutor(max_workers=8, thread_name_prefix="layout")
_flights: dict[str, Future[str]] = {}
_flights_guard = threading.Lock()


class LayoutUnavailable(Exception):
    """There is no drawing; `reason` says why in words for a person."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def check_size(part: GraphPart) -> None:
    """Refuses a part that no layout should be tried on, with its size in words."""
    nodes, edges = len(part.nodes), len(part.edges)
    if nodes > MAX_NODES or edges > MAX_EDGES:
        raise LayoutUnavailable(
            f"this part has {nodes:,} nodes and {edges:,} edges; "
            f"at most {MAX_NODES:,} and {MAX_EDGES:,} are drawn"
        )


async def render_svg(dot: str) -> str:
    """Like render_svg_sync, off the event loop."""
    call = sync_to_async(render_svg_sync, thread_sensitive=False, executor=threads)
    return await call(dot)


def render_svg_sync(dot: str) -> str:
    """The sanitised SVG of this DOT, from the cache where it has been drawn before.

    Raises LayoutUnavailable: too large, no program, too slow, too busy, or the program failed.
    """
    data = dot.encode("utf-8", "replace")
    if len(data) > MAX_DOT_BYTES or dot.count("\n") > MAX_NODES + MAX_EDGES + 20:
        raise LayoutUnavailable("this part is too large to be drawn")
    key = f"dexweb:graph:{DRAWING_VERSION}:{hashlib.sha256(data).hexdigest()}"
    drawn = _cached(key)
    return drawn if drawn is not None else _once(key, lambda: _drawn(key, data))


def _once(key: str, draw: Callable[[], str]) -> str:
    """Of simultaneous callers in this process one draws; the others get its result or its error."""
    with _flights_guard:
        flight = _flights.get(key)
        leads = flight is None
        if flight is None:
            flight = _flights[key] = Future()
    if not leads:
        return flight.result()
    try:
        flight.set_result(draw())
    except BaseException as error:
        flight.set_exception(error)
    finally:
        with _flights_guard:
            del _flights[key]
    return flight.result()


def _drawn(key: str, data: bytes) -> str:
    # Another flight may have landed between our look at the cache and our take-off.
    drawn = _cached(key)
    if drawn is not None:
        return drawn
    program = layout_program()
    if program.path is None:
        raise LayoutUnavailable(f"no layout program: {program.source}")
    seconds = float(getattr(settings, "DEXWEB_LAYOUT_TIMEOUT", 5))
    if not _slots.acquire(timeout=seconds):
        raise LayoutUnavailable("too many graphs are being laid out at the moment")
    try:
        drawn = sanitise_svg(_run(program.path, data, seconds))
    except (LayoutUnavailable, UnsafeSvg) as error:
        # This DOT fares no better a moment later, and each try may cost the whole time limit.
        cache.set(key, ("refused", str(error)), REFUSAL_SECONDS)
        raise LayoutUnavailable(str(error)) from error
    finally:
        _slots.release()
    cache.set(key, ("drawn", drawn), CACHE_SECONDS)
    return drawn


def _cached(key: str) -> str | None:
    kind, text = cache.get(key) or ("", "")
    if kind == "refused":
        raise LayoutUnavailable(text)
    return text if kind == "drawn" else None


def _run(path: str, data: bytes, seconds: float) -> str:
    try:
        process = subprocess.Popen(
            [path, "-Kdot", "-Tsvg"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={name: os.environ[name] for name in PASSED_ENVIRONMENT if name in os.environ},
            start_new_session=True,
        )
    except OSError as error:
        raise LayoutUnavailable(f"the layout program did not start: {error.strerror}") from error
    with process:
        try:
            out, err = process.communicate(data, timeout=seconds)
        except BaseException as error:
            _kill(process)
            if isinstance(error, subprocess.TimeoutExpired):
                reason = f"the layout took longer than {seconds:g} s and was stopped"
                raise LayoutUnavailable(reason) from error
            raise
    if process.returncode != 0:
        logger.warning("layout program ended with %d: %.500r", process.returncode, err)
        raise LayoutUnavailable(f"the layout program failed with status {process.returncode}")
    if len(out) > MAX_SVG_BYTES:
        raise LayoutUnavailable("the drawing is too large to be shown")
    return out.decode("utf-8", "replace")


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Ends the program and all it started; it leads a group of its own."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
