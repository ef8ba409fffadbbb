"""Writes answers so that a number arrives as it is stored, whatever its size."""

import json
import re
import secrets
from collections.abc import Mapping
from typing import Any

from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.utils.encoders import JSONEncoder


class RawJSON:
    """JSON text that goes into an answer as it stands, so that not even 1.10 becomes 1.1."""

    def __init__(self, text: str) -> None:
        """Raises `ValueError` unless ``text`` is JSON."""
        json.loads(text)
        self.text = text


class ExactJSONRenderer(JSONRenderer):
    """JSON with `RawJSON` written through, byte for byte."""

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, Any] | None = None,
    ) -> bytes:
        if data is None:
            return b""
        return dumps_exact(data).encode()


def dumps_exact(data: Any) -> str:
    """``data`` as compact JSON text; lone surrogates are escaped, so it always encodes."""
    # A mark that nobody can guess stands for a raw text until the rest is written.
    mark = secrets.token_hex(16)
    raw: list[str] = []

    class Encoder(JSONEncoder):
        def default(self, obj: Any) -> Any:
            if isinstance(obj, RawJSON):
                raw.append(obj.text)
                return f"{mark}-{len(raw) - 1}"
            return super().default(obj)

    text = json.dumps(data, cls=Encoder, allow_nan=False, separators=(",", ":"))
    if not raw:
        return text
    return re.sub(rf'"{mark}-(\d+)"', lambda found: raw[int(found[1])], text)


class SVGRenderer(BaseRenderer):
    """Markup that is safe already."""

    media_type = "image/svg+xml"
    format = "svg"
    charset = "utf-8"

    def render(
        self,
        data: str,
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, Any] | None = None,
    ) -> bytes:
        return data.encode()
