"""Arguments of tool calls: exact JSON, one canonical form, one hash.

What a person is shown, what is hashed and what is sent all come from the same parsed value.
"""

import hashlib
import json
from typing import Any

import rfc8785


def parse(text: str) -> dict[str, Any]:
    """The arguments in ``text``. Raises ValueError, in words, for what is not one clear object:
    other JSON, numbers that JSON does not have, or a name that is given twice.
    """
    try:
        value = json.loads(text or "{}", parse_constant=_no_constant, object_pairs_hook=_no_twins)
    except json.JSONDecodeError as error:
        raise ValueError(f"The arguments are not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ValueError("The arguments must be a JSON object.")
    return value


def as_text(args: dict[str, Any]) -> str:
    """``args`` as it is kept, shown and sent; integers of any size stay exact."""
    return json.dumps(args, ensure_ascii=False)


def hash_of(args: dict[str, Any]) -> str:
    """SHA-256, hexadecimal, of the canonical JSON (RFC 8785)."""
    return hashlib.sha256(_canonical(args)).hexdigest()


def _canonical(value: Any) -> bytes:
    """RFC 8785, and beyond its range integers with all their digits, where it has no form at all."""
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode("utf-16-be", "surrogatepass"))
        return (
            b"{"
            + b",".join(_string(name) + b":" + _canonical(value[name]) for name in names)
            + b"}"
        )
    if isinstance(value, list):
        return b"[" + b",".join(map(_canonical, value)) + b"]"
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value).encode()
    return rfc8785.dumps(value)


def _string(text: str) -> bytes:
    try:
        return rfc8785.dumps(text)
    except (rfc8785.CanonicalizationError, UnicodeError) as error:
        raise ValueError("A text in the arguments is not valid Unicode.") from error


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number.")


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"The arguments give “{name}” twice.")
        found[name] = value
    return found
