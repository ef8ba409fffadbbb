"""What a layout program wrote, reduced to shapes and text, and dressed in a part's state."""

import re
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from sessions_app.graph.model import GraphNode, GraphPart
from sessions_app.graph.text import shorten
from sessions_app.graph.words import SUBLABEL_COLUMNS

SVG_NAMESPACE = "http://www.w3.org/2000/svg"
LABEL = "Session graph"

STATE_WORDS = {
    "ok": "done",
    "run": "running",
    "act": "waits for a person",
    "bad": "failed",
    "odd": "outcome unknown",
    "off": "not running",
}

_NUMBERS = re.compile(r"[-+0-9eE., ]{1,200000}")
_LENGTH = re.compile(r"[0-9.]{1,12}(pt|px)?")
_PATH = re.compile(r"[-+0-9eE., MmLlHhVvCcSsQqTtAaZz]{1,200000}")
_TRANSFORM = re.compile(r"[-+0-9eE., ()a-z]{1,200}")
_NODE_ID = re.compile(r"step-[A-Za-z0-9_-]{1,2000}")
_CLASS = re.compile(r"graph|node|edge|cluster")
_ANCHOR = re.compile(r"start|middle|end")
_NONE = re.compile(r"none")
_PRESERVE = re.compile(r"preserve")

_SHAPE = {"fill": _NONE}
_TEXT = {"x": _NUMBERS, "y": _NUMBERS, "text-anchor": _ANCHOR, "xml:space": _PRESERVE}
ALLOWED: dict[str, dict[str, re.Pattern[str]]] = {
    "svg": {"width": _LENGTH, "height": _LENGTH, "viewBox": _NUMBERS},
    "g": {"id": _NODE_ID, "class": _CLASS, "transform": _TRANSFORM},
    "path": {"d": _PATH, **_SHAPE},
    "polygon": {"points": _NUMBERS, **_SHAPE},
    "polyline": {"points": _NUMBERS, **_SHAPE},
    "ellipse": {"cx": _NUMBERS, "cy": _NUMBERS, "rx": _NUMBERS, "ry": _NUMBERS, **_SHAPE},
    "text": _TEXT,
    "tspan": _TEXT,
    "title": {},
}
# A link goes, what it holds stays.
UNWRAPPED = frozenset({"a"})


class UnsafeSvg(ValueError):
    """Not SVG that a layout program writes: malformed, or with a document type of its own."""


def sanitise_svg(svg: str) -> str:
    """The same drawing from allowed elements and attributes only, for use inside a page.

    Colours, fonts, links and ids go, but for our own `step-…` ids; a node's second line of text
    gets the class `sub-t`. No XML declaration and no document type. Raises UnsafeSvg.
    """
    cleaner = _Cleaner()
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = cleaner.start
    parser.EndElementHandler = cleaner.end
    parser.CharacterDataHandler = cleaner.text
    parser.StartDoctypeDeclHandler = _refuse_own_doctype
    parser.EntityDeclHandler = _refuse_entity
    try:
        parser.Parse(svg.encode("utf-8", "replace"), True)
    except expat.ExpatError as error:
        raise UnsafeSvg(f"the drawing is not well-formed: {error}") from error
    return "".join(cleaner.out)


def apply_state(svg: str, part: GraphPart) -> str:
    """A sanitised drawing with each node's state class, present second line and title."""
    nodes = {node.id: node for node in part.nodes}

    def dress(match: re.Match[str]) -> str:
        node = nodes.get(match["id"])
        return match[0] if node is None else _dressed(match["inside"], node)

    steps = "1 step" if part.step_count == 1 else f"{part.step_count} steps"
    label = quoteattr(f"{LABEL}: {part.title}, {steps}")
    labelled = svg.replace(f'aria-label="{LABEL}"', f"aria-label={label}", 1)
    return _NODE.sub(dress, labelled)


_NODE = re.compile(r'<g id="(?P<id>step-[^"]+)" class="node">(?P<inside>.*?)</g>', re.DOTALL)
_TITLE = re.compile(r"<title>[^<]*</title>")
_SECOND_LINE = re.compile(r'(<text class="sub-t"[^>]*>)[^<]*(</text>)')


def _dressed(inside: str, node: GraphNode) -> str:
    second = escape(shorten(node.sublabel, SUBLABEL_COLUMNS))
    if second:
        inside = _SECOND_LINE.sub(lambda line: f"{line[1]}{second}{line[2]}", inside, count=1)
    title = escape(title_of(node))
    inside = _TITLE.sub(lambda _: f"<title>{title}</title>", inside, count=1)
    return f'<g id="{node.id}" class="node s-{node.state}">{inside}</g>'


def title_of(node: GraphNode) -> str:
    """All that a node says, uncut: label, step id where it differs, and how it stands."""
    step_ids = "" if len(node.step_ids) > 1 else shorten(node.step_ids[0], 120)
    said = [node.label, step_ids, node.sublabel or STATE_WORDS[node.state]]
    return " · ".join(dict.fromkeys(part for part in said if part))


class _Cleaner:
    """Writes what is allowed as the parser reads, and nothing else."""

    def __init__(self) -> None:
        self.out: list[str] = []
        self.open: list[tuple[str, bool]] = []
        self.skipping = 0
        self.in_node = False
        self.lines = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if self.skipping or not self._is_kept(tag):
            unwrap = tag in UNWRAPPED and not self.skipping
            self.open.append((tag, False))
            self.skipping += not unwrap
            return
        self.open.append((tag, True))
        self.out.append(f"<{tag}{self._attributes(tag, attributes)}>")

    def end(self, tag: str) -> None:
        _, kept = self.open.pop()
        if kept:
            self.out.append(f"</{tag}>")
        elif self.skipping:
            self.skipping -= 1

    def text(self, data: str) -> None:
        if self.skipping or not self.open or self.open[-1][0] not in ("text", "tspan", "title"):
            return
        # dot writes repeated blanks as no-break spaces; one in the data is shown by its code.
        self.out.append(escape(data.replace("\u00a0", " ")))

    def _is_kept(self, tag: str) -> bool:
        if tag == "title":
            return self.in_node
        return tag in ALLOWED and (tag == "svg") == (not self.open)

    def _attributes(self, tag: str, attributes: dict[str, str]) -> str:
        rules = ALLOWED[tag]
        kept = {
            name: value
            for name, value in attributes.items()
            if name in rules and rules[name].fullmatch(value)
        }
        if tag == "svg":
            fixed = {"xmlns": SVG_NAMESPACE, "class": "graph", "role": "img", "aria-label": LABEL}
            kept = {**fixed, **kept}
        if tag == "g":
            self.in_node = kept.get("class") == "node"
            self.lines = 0
        if tag == "text":
            self.lines += 1
            if self.in_node and self.lines == 2:
                kept = {"class": "sub-t", **kept}
        return "".join(f" {name}={quoteattr(value)}" for name, value in kept.items())


def _refuse_own_doctype(
    name: str, system: str | None, public: str | None, has_internal_subset: bool
) -> None:
    if has_internal_subset:
        raise UnsafeSvg("the drawing declares a document type of its own")


def _refuse_entity(*_: object) -> None:
    raise UnsafeSvg("the drawing declares an entity")
