"""The shop's tools as MCP describes them: names, words for the model, schemas, hints."""

from mcp import types

_ORDER_ID = {
    "type": "string",
    "description": "The order's number, like A-1042.",
    "minLength": 1,
    "maxLength": 40,
}


def _tool(
    name: str,
    title: str,
    description: str,
    properties: dict[str, object],
    hints: types.ToolAnnotations,
) -> types.Tool:
    return types.Tool(
        name=name,
        title=title,
        description=description,
        input_schema={
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        },
        annotations=hints,
    )


TOOLS = (
    _tool(
        "lookup_order",
        "Look up an order",
        "Gives an order's customer, amount paid, promised and actual delivery, and refunds.",
        {"order_id": _ORDER_ID},
        types.ToolAnnotations(read_only_hint=True, open_world_hint=False),
    ),
    _tool(
        "search_policy",
        "Search the refund policy",
        "Finds the rules of the refund policy that fit a question.",
        {
            "query": {
                "type": "string",
                "description": "What to look for, in a few words.",
                "maxLength": 400,
            }
        },
        types.ToolAnnotations(read_only_hint=True, open_world_hint=False),
    ),
    _tool(
        "issue_refund",
        "Issue a refund",
        "Pays money back to the customer. It cannot be undone.",
        {
            "order_id": _ORDER_ID,
            "amount": {
                "type": "number",
                "exclusiveMinimum": 0,
                "description": "In the order's currency.",
            },
            "currency": {
                "type": "string",
                "pattern": "^[A-Z]{3}$",
                "description": "ISO 4217, like EUR.",
            },
            "reason": {"type": "string", "minLength": 1, "maxLength": 400},
        },
        types.ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False),
    ),
    _tool(
        "send_email",
        "Send an e-mail",
        "Sends an e-mail to a customer. The same call is sent once, however often it is tried.",
        {
            "to": {
                "type": "string",
                "pattern": "^[^@\\s]+@[^@\\s]+$",
                "description": "The address.",
            },
            "subject": {"type": "string", "minLength": 1, "maxLength": 200},
            "body": {"type": "string", "minLength": 1, "maxLength": 20000},
        },
        types.ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True),
    ),
)


def required_arguments(tool: str) -> list[str]:
    """The arguments a tool cannot do without; [] for an unknown tool."""
    return next((list(each.input_schema["required"]) for each in TOOLS if each.name == tool), [])
