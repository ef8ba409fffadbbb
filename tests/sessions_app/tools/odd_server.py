"""An MCP server with tools that are odd in every way; over stdio, or over HTTP with a port."""

import asyncio
import base64
import os
import sys

from mcp import types
from mcp.server.mcpserver import Context, MCPServer

PICTURE = base64.b64encode(b"\x89PNG" + b"0" * 1496).decode()

server = MCPServer("odd")


@server.tool()
async def environment() -> dict[str, str]:
    return dict(os.environ)


@server.tool()
async def slow(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "done"


@server.tool()
async def counts(context: Context) -> str:
    for done in range(1, 4):
        await context.report_progress(done, 3, f"step {done}")
    return "counted"


@server.tool()
async def picture() -> list[types.ContentBlock]:
    return [
        types.TextContent(type="text", text="Here it is."),
        types.ImageContent(type="image", data=PICTURE, mime_type="image/png"),
    ]


@server.tool()
async def long(characters: int) -> list[types.ContentBlock]:
    return [types.TextContent(type="text", text="ä" * characters)]


@server.tool(name="with.dots and spaces, and a name that is much longer than providers take it")
async def oddly_named() -> str:
    return "found"


@server.tool()
async def echo(value: int) -> str:
    return str(value)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
    else:
        server.run("stdio")
