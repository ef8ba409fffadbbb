"""Turns an MCP tool result into text a model and a person can read."""

import json
from typing import Any

from mcp import types

from sessions_app.tools.definitions import ToolResult
from sessions_app.tools.redaction import redact, redact_value

#: More than this is cut before it leaves the connection; what a model gets is limited elsewhere.
MAX_RESULT_BYTES = 2 * 1024 * 1024


def to_tool_result(result: types.CallToolResult, secret: str = "") -> ToolResult:
    """The result as text: the structured content as JSON where every part only repeats it, else
    each part. It is cleaned of the secret before it is cut, or half of one could stay.
    """
    text, truncated = _cut(redact(_text_of(result), secret))
    return ToolResult(
        text=text,
        is_error=bool(result.is_error),
        truncated=truncated,
        structured=redact_value(result.structured_content, secret),
    )


def _text_of(result: types.CallToolResult) -> str:
    structured = result.structured_content
    if structured is not None and not result.is_error and _only_text(result.content):
        return json.dumps(_unwrapped(structured), ensure_ascii=False)
    pieces = [_part_text(part) for part in result.content]
    if structured is not None and not _only_text(result.content):
        pieces.append(json.dumps(_unwrapped(structured), ensure_ascii=False))
    return "\n\n".join(piece for piece in pieces if piece)


def _only_text(content: list[types.ContentBlock]) -> bool:
    return all(isinstance(part, types.TextContent) for part in content)


def _unwrapped(structured: Any) -> Any:
    """SDKs wrap a plain return value as `{"result": …}`; the wrapping says nothing."""
    if isinstance(structured, dict) and list(structured) == ["result"]:
        return structured["result"]
    return structured


def _part_text(part: types.ContentBlock) -> str:
    if isinstance(part, types.TextContent):
        return part.text
    if isinstance(part, types.ImageContent):
        return f"[An image, {part.mime_type}, {_decoded_size(part.data)}, is not shown here.]"
    if isinstance(part, types.AudioContent):
        return f"[A sound, {part.mime_type}, {_decoded_size(part.data)}, is not shown here.]"
    if isinstance(part, types.ResourceLink):
        return f"[A link to {part.name}: {part.uri}]"
    if isinstance(part, types.EmbeddedResource):
        resource = part.resource
        if isinstance(resource, types.TextResourceContents):
            return resource.text
        kind = resource.mime_type or "binary data"
        return (
            f"[A file, {resource.uri}, {kind}, {_decoded_size(resource.blob)}, is not shown here.]"
        )
    return f"[A part of kind {getattr(part, 'type', 'unknown')} is not shown here.]"


def _decoded_size(base64_text: str) -> str:
    size = len(base64_text) * 3 // 4 - base64_text[-2:].count("=")
    return f"{size} bytes" if size < 1024 else f"{size / 1024:.0f} KiB"


def _cut(text: str) -> tuple[str, bool]:
    data = text.encode("utf-8", errors="replace")
    if len(data) <= MAX_RESULT_BYTES:
        return text, False
    return data[:MAX_RESULT_BYTES].decode("utf-8", errors="ignore"), True
