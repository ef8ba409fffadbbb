"""The shop's MCP server.

Environment: `SHOP_DB` is the SQLite file (default `shop.sqlite3`); `SHOP_DELAY`, for demos and
tests, makes tools slow, as `lookup_order=2s,issue_refund=5s`: the wait comes after the call is in
the ledger.
"""

import json
import os
from collections.abc import Awaitable, Callable, Mapping
from decimal import Decimal
from typing import Any

import anyio
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from sessions_app.tools.durations import duration_seconds
from sessions_app.tools.shop.ledger import Ledger, ShopError
from sessions_app.tools.shop.orders import describe, find_policies
from sessions_app.tools.shop.tools import TOOLS, required_arguments

#: Where a call's id rides, in a request's `_meta`; said again here, since the shop is a stranger.
CALL_ID_META = "dexweb/call_id"


class Shop:
    """The tools themselves: each takes the arguments and the call id, and gives what the model
    reads.
    """

    def __init__(self, ledger: Ledger, delays: Mapping[str, float]) -> None:
        self._ledger = ledger
        self._delays = delays
        self._tools: dict[str, Callable[[Mapping[str, Any], str], Awaitable[dict[str, Any]]]] = {
            "lookup_order": self._lookup_order,
            "search_policy": self._search_policy,
            "issue_refund": self._issue_refund,
            "send_email": self._send_email,
        }

    async def call(self, tool: str, args: Mapping[str, Any], call_id: str) -> dict[str, Any]:
        """Runs one tool. Raises `ShopError` for what the shop refuses."""
        if tool not in self._tools:
            raise ShopError(f"The shop has no tool {tool}.")
        missing = [name for name in required_arguments(tool) if name not in args]
        if missing:
            raise ShopError(f"{tool} needs {', '.join(missing)}.")
        return await self._tools[tool](args, call_id)

    async def _lookup_order(self, args: Mapping[str, Any], call_id: str) -> dict[str, Any]:
        order_id = str(args["order_id"])
        self._ledger.note_lookup(order_id, call_id)
        await self._wait("lookup_order")
        order, refunded = self._ledger.order(order_id)
        return describe(order, refunded)

    async def _search_policy(self, args: Mapping[str, Any], call_id: str) -> dict[str, Any]:
        await self._wait("search_policy")
        return {"policies": find_policies(str(args["query"]))}

    async def _issue_refund(self, args: Mapping[str, Any], call_id: str) -> dict[str, Any]:
        order_id = str(args["order_id"]).strip().upper()
        amount = Decimal(str(args["amount"]))
        if amount != round(amount, 2):
            raise ShopError("An amount has at most two decimals.")
        currency = str(args["currency"])
        number = self._ledger.begin_refund(order_id, amount, currency, str(args["reason"]), call_id)
        await self._wait("issue_refund")
        self._ledger.finish_refund(number)
        return {
            "refund_id": f"R-{number}",
            "order_id": order_id,
            "amount": float(amount),
            "currency": currency,
        }

    async def _send_email(self, args: Mapping[str, Any], call_id: str) -> dict[str, Any]:
        await self._wait("send_email")
        to = str(args["to"])
        number, already = self._ledger.send_email(
            to, str(args["subject"]), str(args["body"]), call_id
        )
        return {"email_id": f"M-{number}", "to": to, "sent": True, "already_sent": already}

    async def _wait(self, tool: str) -> None:
        if tool in self._delays:
            await anyio.sleep(self._delays[tool])


def parse_delays(text: str) -> dict[str, float]:
    """`lookup_order=2s,issue_refund=5s` as seconds by tool."""
    pairs = (piece.partition("=") for piece in text.split(",") if piece.strip())
    return {tool.strip(): duration_seconds(duration) for tool, _, duration in pairs}


def build_server(shop: Shop) -> Server:
    """The MCP server around a shop."""

    async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=list(TOOLS))

    async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        call_id = str((context.meta or {}).get(CALL_ID_META, ""))
        try:
            answer = await shop.call(params.name, params.arguments or {}, call_id)
        except ShopError as error:
            return types.CallToolResult(
                content=[types.TextContent(type="text", text=str(error))], is_error=True
            )
        text = types.TextContent(type="text", text=_as_json(answer))
        return types.CallToolResult(content=[text], structured_content=answer)

    return Server("dexweb-demo-shop", version="1", on_list_tools=list_tools, on_call_tool=call_tool)


async def serve() -> None:
    """Serves over stdio until stdin closes."""
    ledger = Ledger(os.environ.get("SHOP_DB", "shop.sqlite3"))
    server = build_server(Shop(ledger, parse_delays(os.environ.get("SHOP_DELAY", ""))))
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def _as_json(answer: dict[str, Any]) -> str:
    return json.dumps(answer, ensure_ascii=False)
