"""What every refusal is."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar


@dataclass
class DexwebError(Exception):
    """Something that was asked for and refused. ``code`` is stable; `message` is for people."""

    code: ClassVar[str] = "error"
    status: ClassVar[int] = 400
    title: ClassVar[str] = "That cannot be done"
    retry_after: ClassVar[int | None] = None

    def __str__(self) -> str:
        return self.message

    @property
    def message(self) -> str:
        return self.title

    @property
    def kept(self) -> bool:
        """Whether it is about a decision that stays kept and is delivered later."""
        return getattr(self, "delivery", "") == "delivery_pending"

    def details(self) -> dict[str, Any]:
        """The fields by name, JSON-ready."""
        return asdict(self)
