from collections.abc import Iterator
from typing import Any

import pytest

from sessions_app.llm.stream import ModelReply, stream_response
from tests.sessions_app.llm.provider import Provider


@pytest.fixture
def provider() -> Iterator[Provider]:
    server = Provider()
    yield server
    server.close()


class Listener:
    """Keeps the pieces of a reply as they came."""

    def __init__(self) -> None:
        self.pieces: list[tuple[str, str]] = []

    async def __call__(self, kind: str, text: str) -> None:
        self.pieces.append((kind, text))

    def of(self, kind: str) -> list[str]:
        return [text for each, text in self.pieces if each == kind]


@pytest.fixture
def listener() -> Listener:
    return Listener()


async def ask(
    model: Any, messages: Any, tools: Any = (), listener: Any = None, **settings: Any
) -> ModelReply:
    """Calls a model with instructions of no matter."""
    return await stream_response(
        model, messages, "You handle refunds.", tools, settings, listener or Listener()
    )
