"""A WebSocket client small enough to read: what a script or a browser sends over TCP."""

import asyncio
import base64
import json
import os
import struct
from typing import Any


class Wire:
    """One open connection. `read` gives each message, or the code it was closed with."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def open(cls, port: int, path: str, **headers: str) -> "Wire":
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=4 * 1024 * 1024)
        lines = [
            f"GET {path} HTTP/1.1",
            f"Host: 127.0.0.1:{port}",
            "Upgrade: websocket",
            "Connection: Upgrade",
            "Sec-WebSocket-Version: 13",
            f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}",
            *(f"{name}: {value}" for name, value in headers.items()),
        ]
        writer.write("\r\n".join([*lines, "", ""]).encode())
        answer = await reader.readuntil(b"\r\n\r\n")
        status = int(answer.split(b" ", 2)[1])
        if status != 101:
            raise ConnectionRefusedError(status)
        return cls(reader, writer)

    async def read(self) -> dict[str, Any] | int:
        while True:
            opcode, payload = await self._frame()
            if opcode == 1:
                return dict(json.loads(payload))
            if opcode == 8:
                return int(struct.unpack("!H", payload[:2])[0]) if payload else 1005
            if opcode == 9:
                self._write(10, payload)

    def say(self, **message: Any) -> None:
        self._write(1, json.dumps(message).encode())

    def close(self) -> None:
        self.writer.close()

    async def _frame(self) -> tuple[int, bytes]:
        first, length = await self.reader.readexactly(2)
        if length == 126:
            (length,) = struct.unpack("!H", await self.reader.readexactly(2))
        elif length == 127:
            (length,) = struct.unpack("!Q", await self.reader.readexactly(8))
        return first & 15, await self.reader.readexactly(length)

    def _write(self, opcode: int, payload: bytes) -> None:
        head = bytes([0x80 | opcode])
        if len(payload) < 126:
            head += bytes([0x80 | len(payload)])
        else:
            head += bytes([0x80 | 126]) + struct.pack("!H", len(payload))
        # A mask of zeros is a mask: the rule is there for proxies, not for us.
        self.writer.write(head + bytes(4) + payload)
