"""A part of the graph as DOT: only what is stable, so that one layout serves every state."""

import graphviz

from sessions_app.graph.model import GraphNode, GraphPart
from sessions_app.graph.text import shorten, visible
from sessions_app.graph.words import SUBLABEL_COLUMNS

# What fits the fixed box at the page's 12 px; the whole text is in the node's title.
LABEL_COLUMNS = 25

# nslimit bounds the simplex that places nodes across, which is what costs in a large part.
GRAPH_ATTRIBUTES = {
    "rankdir": "TB",
    "bgcolor": "transparent",
    "nodesep": ".28",
    "ranksep": ".42",
    "nslimit": "0.1",
    "nslimit1": "0.1",
}
NODE_ATTRIBUTES = {
    "shape": "box",
    "style": "rounded",
    "width": "2.4",
    "height": ".55",
    "fixedsize": "true",
    "fontname": "Helvetica",
    "fontsize": "11",
}
EDGE_ATTRIBUTES = {"arrowsize": ".6"}


def to_dot(part: GraphPart) -> str:
    """Deterministic DOT; each node carries its id and two lines of text, never its state."""
    graph = graphviz.Digraph(
        graph_attr=GRAPH_ATTRIBUTES, node_attr=NODE_ATTRIBUTES, edge_attr=EDGE_ATTRIBUTES
    )
    for node in part.nodes:
        graph.node(
            escape(node.id),
            label=escape_lines(first_line(node), second_line(node)),
            id=escape(node.id),
        )
    for cause, effect in part.edges:
        graph.edge(escape(cause), escape(effect))
    return str(graph.source)


def first_line(node: GraphNode) -> str:
    """The label as the box shows it; a fold keeps its count when the name is cut."""
    count = f" ×{len(node.step_ids)}" if len(node.step_ids) > 1 else ""
    return shorten(node.label.removesuffix(count), LABEL_COLUMNS - len(count)) + count or "…"


def second_line(node: GraphNode) -> str:
    """What the box shows below the label until a sublabel takes its place."""
    return shorten(node.note or node.id.removeprefix("step-"), SUBLABEL_COLUMNS) or "…"


def escape(text: str) -> graphviz.quoting.NoHtml:
    """The one escaper for labels and ids: dot decodes entities and reads backslashes and <…>."""
    return graphviz.escape(visible(text.replace("&", "&amp;")))


def escape_lines(*lines: str) -> graphviz.quoting.NoHtml:
    """Several escaped lines as one label; the break is dot's own `\\n`."""
    return graphviz.nohtml(r"\n".join(escape(line) for line in lines))
