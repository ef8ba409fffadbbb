import xml.etree.ElementTree as ET

import pytest

from sessions_app.graph.dot import LABEL_COLUMNS, first_line, second_line, to_dot
from sessions_app.graph.render import render_svg_sync
from sessions_app.graph.svg import UnsafeSvg, apply_state, sanitise_svg
from sessions_app.graph.text import shorten
from tests.sessions_app.graph.build import HOSTILE_TEXTS, fan, only_part, step

SVG = "{http://www.w3.org/2000/svg}"
NODE = (
    '<g id="step-a" class="node"><title>t</title><text x="1">one</text><text x="1">two</text></g>'
)


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in ET.fromstring(svg).iter(f"{SVG}text")]


def svg_of(inside: str) -> str:
    return f'<svg width="10pt" height="10pt" viewBox="0 0 10 10">{inside}</svg>'


# Drawn by the real program


def test_all_hostile_labels_are_shown_as_they_are(real_program):
    steps = [step(f"CallTool-{n}", tool=f"shop__{text}") for n, text in enumerate(HOSTILE_TEXTS)]
    part = only_part(*steps)
    shown = texts(render_svg_sync(to_dot(part)))
    lines = [line for node in part.nodes for line in (first_line(node), second_line(node))]
    assert sorted(shown) == sorted(lines)


def test_hostile_step_ids_are_shown_as_they_are(real_program):
    part = only_part(*(step(text, type="CallTool") for text in HOSTILE_TEXTS))
    svg = apply_state(render_svg_sync(to_dot(part)), part)
    labels = texts(svg)[::2]
    assert sorted(labels) == sorted(shorten(text, LABEL_COLUMNS) for text in HOSTILE_TEXTS)
    ids = {element.get("id") for element in ET.fromstring(svg).iter() if element.get("id")}
    assert ids == {node.id for node in part.nodes}


def test_a_drawing_has_a_group_for_each_node_and_no_other_ids(real_program):
    root = ET.fromstring(render_svg_sync(to_dot(only_part(*fan(3)))))
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    assert sorted(ids) == sorted(
        [
            "step-RunModel-1",
            "step-CallTool-1",
            "step-CallTool-2",
            "step-CallTool-3",
            "step-ResumeTurn-1",
        ]
    )
    assert len([e for e in root.iter(f"{SVG}g") if e.get("class") == "edge"]) == 6
    assert root.get("width", "").endswith("pt")
    assert root.get("viewBox")


def test_a_drawing_carries_no_colour_and_no_font(real_program):
    svg = render_svg_sync(to_dot(only_part(*fan(3))))
    for word in ("stroke=", "font-", "black", "style=", "<?xml", "<!DOCTYPE", "xlink", "<!--"):
        assert word not in svg
    assert svg.startswith('<svg xmlns="http://www.w3.org/2000/svg" class="graph" role="img"')


# Dressed in state


@pytest.mark.parametrize("text", HOSTILE_TEXTS)
def test_state_and_second_line_are_put_in_as_text(text):
    part = only_part(step("a", type="CallTool", status="active", detail=text))
    svg = apply_state(sanitise_svg(svg_of(NODE)), part)
    root = ET.fromstring(svg)
    assert root.find(f".//{SVG}g").get("class") == "node s-run"
    assert texts(svg) == ["one", part.nodes[0].sublabel]


def test_without_a_sublabel_the_stable_line_stays():
    svg = apply_state(sanitise_svg(svg_of(NODE)), only_part(step("a", type="CallTool")))
    assert texts(svg) == ["one", "two"]
    assert "<title>a · done</title>" in svg


def test_the_drawing_is_named_for_its_part():
    svg = apply_state(sanitise_svg(svg_of(NODE)), only_part(step("a", type="CallTool")))
    assert ET.fromstring(svg).get("aria-label") == "Session graph: Turn 1, 1 step"


def test_a_node_that_the_part_does_not_know_is_left_as_it_is():
    svg = sanitise_svg(svg_of(NODE))
    assert 'class="node"' in apply_state(svg, only_part(step("b", type="CallTool")))


def test_two_states_of_one_part_share_a_drawing(real_program):
    waiting = only_part(step("AwaitAnswer-1", status="waiting"))
    answered = only_part(step("AwaitAnswer-1", outcome="answered"))
    svg = render_svg_sync(to_dot(waiting))
    assert to_dot(waiting) == to_dot(answered)
    assert 'class="node s-act"' in apply_state(svg, waiting)
    assert 'class="node s-ok"' in apply_state(svg, answered)


# Cleaned


@pytest.mark.parametrize(
    "inside",
    [
        "<script>x()</script>",
        "<style>*{}</style>",
        "<foreignObject><b>x()</b></foreignObject>",
        '<image href="http://x()"/>',
        '<use href="#x()"/>',
        '<g onclick="x()"/>',
        '<path d="M0,0" style="x()"/>',
        '<path d="x()"/>',
        '<path d="M0,0" fill="url(#x())"/>',
        '<g transform="x()&quot;"/>',
        '<g class="x()"/>',
        '<g id="x()"/>',
        "<script><g><text>x()</text></g></script>",
        "<svg><text>x()</text></svg>",
        "<x:script xmlns:x='http://www.w3.org/2000/svg'>x()</x:script>",
        "<title>x()</title>",
        "<!-- x() --><?php x() ?><![CDATA[x()]]>",
        "x()",
    ],
)
def test_what_a_layout_program_has_no_business_to_write_is_left_out(inside):
    svg = sanitise_svg(svg_of(inside + NODE))
    assert "x()" not in svg
    assert texts(svg) == ["one", "two"]


def test_a_link_goes_and_what_it_holds_stays():
    svg = sanitise_svg(svg_of('<a href="http://elsewhere/"><text x="1">kept</text></a>'))
    assert "elsewhere" not in svg
    assert texts(svg) == ["kept"]


def test_the_second_line_of_a_node_is_marked_and_no_other():
    svg = sanitise_svg(svg_of(NODE + NODE))
    marked = [e.text for e in ET.fromstring(svg).iter(f"{SVG}text") if e.get("class") == "sub-t"]
    assert marked == ["two", "two"]


@pytest.mark.parametrize(
    "svg",
    [
        "",
        "no drawing",
        "<svg><g></svg>",
        '<!DOCTYPE svg [<!ENTITY a "b">]><svg>&a;</svg>',
        '<!DOCTYPE svg [<!ENTITY % a SYSTEM "file:///etc/passwd">%a;]><svg/>',
        "<svg>&undefined;</svg>",
    ],
)
def test_what_is_malformed_or_declares_entities_is_refused(svg):
    with pytest.raises(UnsafeSvg):
        sanitise_svg(svg)


def test_the_plain_document_type_that_dot_writes_is_accepted():
    doctype = '<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://elsewhere/svg11.dtd">'
    assert texts(sanitise_svg(doctype + svg_of(NODE))) == ["one", "two"]
