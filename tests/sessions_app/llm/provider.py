"""A local HTTP server that answers as a model provider does, event by event."""

import json
import threading
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Provider:
    """Plays one answer to every request and keeps what it was asked."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.status = 200
        self.headers: dict[str, str] = {}
        self.body = b""
        self.cut_off = False
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def fails(self, status: int, body: Any, **headers: str) -> None:
        self.status, self.headers = status, headers
        self.body = json.dumps(body).encode()

    def streams(self, *events: dict[str, Any] | str, named: bool = False) -> None:
        """Answers with server-sent events; `named` adds the `event:` line from each one's type."""
        self.status, self.headers = 200, {"content-type": "text/event-stream"}
        self.body = "".join(_event(event, named) for event in events).encode()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(provider) -> type[BaseHTTPRequestHandler]:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers.get("content-length", 0))
                provider.requests.append(
                    {
                        "path": self.path,
                        "headers": {key.lower(): value for key, value in self.headers.items()},
                        "json": json.loads(self.rfile.read(length) or b"{}"),
                    }
                )
                self.send_response(provider.status)
                headers = {"content-type": "application/json"} | provider.headers
                for name, value in headers.items():
                    self.send_header(name.replace("_", "-"), value)
                length = len(provider.body) + (1000 if provider.cut_off else 0)
                self.send_header("content-length", str(length))
                self.end_headers()
                self.wfile.write(provider.body)

            def log_message(self, *args: object) -> None:
                pass

        return Handler


def _event(event: dict[str, Any] | str, named: bool) -> str:
    data = event if isinstance(event, str) else json.dumps(event)
    name = f"event: {event['type']}\n" if named and isinstance(event, dict) else ""
    return f"{name}data: {data}\n\n"


def chat(
    *deltas: dict[str, Any],
    model: str = "gpt-4o",
    finish: str = "stop",
    usage: tuple[int, int] | None = (1000, 200),
) -> Iterable[dict[str, Any] | str]:
    """The events of an OpenAI chat completion."""
    base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": model}
    for delta in deltas:
        yield {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}
    if usage is not None:
        read, written = usage
        counts = {"prompt_tokens": read, "completion_tokens": written}
        yield {**base, "choices": [], "usage": {**counts, "total_tokens": read + written}}
    yield "[DONE]"


def chat_call(index: int, call_id: str | None, tool: str, *pieces: str) -> list[dict[str, Any]]:
    """The deltas of one tool call, its arguments in pieces."""
    head = {"index": index, "type": "function", "function": {"name": tool, "arguments": ""}}
    if call_id is not None:
        head["id"] = call_id
    deltas: list[dict[str, Any]] = [{"tool_calls": [head]}]
    deltas += [
        {"tool_calls": [{"index": index, "function": {"arguments": piece}}]} for piece in pieces
    ]
    return deltas


def anthropic_reply(model: str = "claude-sonnet-5-5") -> Iterable[dict[str, Any]]:
    """The events of an Anthropic message: a thought, a text, a tool call."""
    usage = {"input_tokens": 50, "output_tokens": 1}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": model}
    message |= {"content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    yield {"type": "message_start", "message": message}
    tool = {"type": "tool_use", "id": "toolu_1", "name": "shop__lookup_order", "input": {}}
    args = '{"order_id": "A-1042"}'
    blocks = [
        (
            {"type": "thinking", "thinking": "", "signature": ""},
            [
                {"type": "thinking_delta", "thinking": "Which order? "},
                {"type": "thinking_delta", "thinking": "A-1042."},
                {"type": "signature_delta", "signature": "c2ln"},
            ],
        ),
        (
            {"type": "text", "text": ""},
            [{"type": "text_delta", "text": piece} for piece in ("I'll look ", "it up.")],
        ),
        (
            tool,
            [{"type": "input_json_delta", "partial_json": piece} for piece in (args[:7], args[7:])],
        ),
    ]
    for index, (block, deltas) in enumerate(blocks):
        yield {"type": "content_block_start", "index": index, "content_block": block}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    stop = {"stop_reason": "tool_use", "stop_sequence": None}
    yield {"type": "message_delta", "delta": stop, "usage": {"output_tokens": 30}}
    yield {"type": "message_stop"}


def responses_reply(model: str = "gpt-5.2") -> Iterable[dict[str, Any]]:
    """The events of an OpenAI Responses answer: a text."""
    response: dict[str, Any] = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": model,
        "status": "in_progress",
        "output": [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }
    item = {"id": "msg_1", "type": "message", "role": "assistant", "status": "in_progress"}
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    part = {"type": "output_text", "text": "Hello there.", "annotations": []}
    yield {"type": "response.created", "response": response, "sequence_number": 0}
    yield {
        "type": "response.output_item.added",
        "output_index": 0,
        "item": {**item, "content": []},
        "sequence_number": 1,
    }
    for number, piece in enumerate(("Hello ", "there."), 2):
        yield {
            "type": "response.output_text.delta",
            **place,
            "delta": piece,
            "logprobs": [],
            "sequence_number": number,
        }
    done = {**item, "status": "completed", "content": [part]}
    yield {
        "type": "response.output_item.done",
        "output_index": 0,
        "item": done,
        "sequence_number": 4,
    }
    usage = {
        "input_tokens": 12,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 3,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 15,
    }
    finished = {**response, "status": "completed", "output": [done], "usage": usage}
    yield {"type": "response.completed", "response": finished, "sequence_number": 5}
