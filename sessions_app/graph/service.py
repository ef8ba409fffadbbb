"""A part as a page shows it: the drawing or the reason why there is none, and always its rows."""

import logging
from dataclasses import dataclass

from asgiref.sync import sync_to_async

from sessions_app.graph import render
from sessions_app.graph.dot import to_dot
from sessions_app.graph.model import GraphNode, GraphPart, as_list

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class PartView:
    """`svg` is safe markup or None, and then `reason` says why; `rows` are (depth, node) always."""

    part: GraphPart
    svg: str | None
    reason: str
    rows: tuple[tuple[int, GraphNode], ...]


def part_view(part: GraphPart) -> PartView:
    """Never raises: whatever keeps the drawing away becomes a reason beside the list."""
    rows = tuple(as_list(part))
    try:
        render.check_size(part)
        svg = render.apply_state(render.render_svg_sync(to_dot(part)), part)
    except render.LayoutUnavailable as unavailable:
        return PartView(part, None, unavailable.reason, rows)
    except Exception:
        logger.exception("graph part %s could not be drawn", part.key)
        return PartView(part, None, "the graph could not be drawn; the log says why", rows)
    return PartView(part, svg, "", rows)


async def part_view_async(part: GraphPart) -> PartView:
    """Like part_view, off the event loop."""
    return await sync_to_async(part_view, thread_sensitive=False, executor=render.threads)(part)
