"""Reads a request's JSON without changing what it says."""

import json
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import IO, Any, NoReturn

from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser

from dexweb.engine.errors import TooLarge

BODY_LIMIT = 1024 * 1024


class ExactJSONParser(BaseParser):
    """Strict JSON of at most `BODY_LIMIT` bytes.

    Integers keep every digit and decimals become `Decimal`; NaN, repeated names and anything but
    UTF-8 are refused. Raises `TooLarge` (413) and `ParseError` (400).
    """

    media_type = "application/json"

    def parse(
        self,
        stream: IO[bytes],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        body = stream.read(BODY_LIMIT + 1)
        if len(body) > BODY_LIMIT:
            declared = stream.META.get("CONTENT_LENGTH") if hasattr(stream, "META") else None
            raise TooLarge(size=int(declared or len(body)), limit=BODY_LIMIT)
        try:
            return loads_exact(body.decode("utf-8"))
        except RecursionError as error:
            raise ParseError("The JSON is nested too deeply.") from error
        except ValueError as error:
            raise ParseError(f"The body is not valid JSON: {error}") from error


def loads_exact(text: str) -> Any:
    """``text`` as JSON, numbers exact. Raises `ValueError` for what strict JSON does not allow."""
    return json.loads(
        text, parse_float=_decimal, parse_constant=_no_constant, object_pairs_hook=_no_repeats
    )


def _decimal(digits: str) -> Decimal:
    try:
        return Decimal(digits)
    except InvalidOperation:
        raise ValueError(f"{digits[:40]} is beyond all numbers that can be kept") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name occurs twice in one object")
    return found
