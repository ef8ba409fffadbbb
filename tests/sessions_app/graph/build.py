"""Steps and parts for the graph's tests."""

from typing import Any

from sessions_app.graph.model import GraphNode, GraphPart, GraphStep, build_parts

HOSTILE_TEXTS = (
    "&amp;",
    "&lt;b&gt; & co",
    "&#x202e;",
    r"\N \G \L \E \l \r \n \\",
    "ends with \\",
    "a\\",
    '"quoted" and \\"half',
    "'single'",
    "two\nlines\r\n\tand a tab",
    "abc\u202edcba",
    "zero\u200bwidth\ufeff",
    "lone \ud800 half",
    "\x00\x01\x1b[31m",
    "\ufffe\uffff",
    "</svg><script>x()</script>",
    "<b>bold</b>",
    "<<b>html</b>>",
    "<>",
    "]]>",
    "<!--",
    "two  blanks   three",
    " led and followed ",
    "   ",
    "no\u00a0break\u2003em",
    "a -> b; c [x=y] {",
    "// no comment #",
    "graph",
    "node",
    "訂單查詢工具",
    "é e\u0301 ß",
    "👩\u200d👧",
    "\u3164",
    "-1.5",
)


def step(step_id: str = "RunModel-1", **given: Any) -> GraphStep:
    """A completed Step of turn 1 whose type is what its id begins with."""
    defaults = {
        "type": step_id.rpartition("-")[0],
        "status": "completed",
        "turn": 1,
        "causes": (),
    }
    return GraphStep(step_id, **(defaults | given))


def fan(count: int, **given: Any) -> list[GraphStep]:
    """A model Step, `count` like tool Steps, and the Step that joins them."""
    calls = [
        step(f"CallTool-{n}", causes=("RunModel-1",), **({"tool": "shop__look"} | given))
        for n in range(1, count + 1)
    ]
    join = step("ResumeTurn-1", causes=tuple(call.step_id for call in calls))
    return [step("RunModel-1"), *calls, join]


def long_session(count: int, turns: int = 1) -> list[GraphStep]:
    """`count` Steps: each round a model Step, three different tools and a join."""
    steps: list[GraphStep] = []
    before: tuple[str, ...] = ()
    number = 0
    while len(steps) < count:
        number += 1
        turn = 1 + len(steps) * turns // count
        model, join = f"RunModel-{number}", f"ResumeTurn-{number}"
        tools = tuple(f"CallTool-{number * 3 + n}" for n in range(3))
        steps.append(step(model, turn=turn, causes=before))
        steps += [
            step(tool, turn=turn, causes=(model,), tool=f"shop__{n}")
            for n, tool in enumerate(tools)
        ]
        steps.append(step(join, turn=turn, causes=tools))
        before = (join,)
    return steps[:count]


def only_part(*steps: GraphStep) -> GraphPart:
    (part,) = build_parts(steps)
    return part


def only_node(*steps: GraphStep) -> GraphNode:
    (node,) = only_part(*steps).nodes
    return node
