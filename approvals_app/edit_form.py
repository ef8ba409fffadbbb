"""Editing what will run: the fields that a tool's JSON schema asks for, and the look before approving.

`edit_fields` says which fields there are; a script draws them beside the raw JSON. Neither decides
what is valid: that is `decisions.check_edited` alone, and `field_errors` puts what it says at the
fields.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

from approvals_app import decisions
from approvals_app.argument_diff import Change, changes
from approvals_app.models import Interrupt
from dexweb.engine.errors import DexwebError, StaleInterrupt

DEEPEST = 6
FIELDS_AT_MOST = 300
AT = re.compile(r"(\$\S*?): (.*)", re.DOTALL)
SIMPLE = {"string": "text", "number": "number", "integer": "integer", "boolean": "boolean"}
FORMATS = ("date", "date-time", "time", "email", "uri")


@dataclass(frozen=True)
class Review:
    """Edited arguments that passed: ``text`` is what would run, "" when nothing was changed."""

    text: str
    changes: list[Change]


@dataclass(frozen=True)
class FieldError:
    """What is wrong, and where: a JSON path like ``$.lines[0].amount``, or "" for all of it."""

    path: str
    words: str


def review(user: Any, interrupt: Interrupt, *, revision: int, args_hash: str, args: str) -> Review:
    """What deciding with ``args`` would change; decides nothing.

    Raises what `decisions.decide` would raise for them.
    """
    decisions.authorise(user, interrupt)
    decisions.check_pending(interrupt)
    if (revision, args_hash) != (interrupt.revision, interrupt.args_hash):
        raise StaleInterrupt(
            interrupt_id=interrupt.pk, revision=interrupt.revision, args_hash=interrupt.args_hash
        )
    text = decisions.check_edited(interrupt, args)
    return Review(text, changes(interrupt.args, text) if text else [])


def field_errors(refusal: DexwebError | None) -> list[FieldError]:
    """The faults of refused arguments, each at its field."""
    found = []
    for error in getattr(refusal, "errors", None) or []:
        match = AT.fullmatch(error)
        found.append(FieldError(*match.groups()) if match else FieldError("", error))
    return found


def edit_fields(schema: dict[str, Any]) -> dict[str, Any]:
    """The fields of ``schema`` as plain data for the script that draws them.

    A node has ``kind``: object (``fields``), list (``item``), choice (``options``, as JSON text),
    text, number, integer, boolean, null, or json for what has no form of its own. It may have
    ``label``, ``help``, ``format``, ``nullable``; a field of an object also ``name`` and
    ``required``.
    """
    return _Fields(schema).node(schema, 0)


class _Fields:
    """Walks a schema; ``left`` bounds how much of it is drawn."""

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._left = FIELDS_AT_MOST

    def node(self, schema: Any, depth: int) -> dict[str, Any]:
        self._left -= 1
        schema = self._resolved(schema)
        if schema is None or depth > DEEPEST or self._left < 0:
            return {"kind": "json"}
        about = {
            name: str(schema[key])
            for name, key in (("label", "title"), ("help", "description"))
            if schema.get(key)
        }
        choices = self._alternatives(schema)
        if choices is None:
            return {**about, **self._plain(schema, depth)}
        others = [choice for choice in choices if choice != {"type": "null"}]
        nullable = len(others) < len(choices)
        if len(others) != 1:
            return {**about, "kind": "json"}
        return {**self.node(others[0], depth), **about, **({"nullable": True} if nullable else {})}

    def _resolved(self, schema: Any) -> dict[str, Any] | None:
        """``schema`` with its references followed inside the root, or None when that fails."""
        for _ in range(DEEPEST):
            if not isinstance(schema, dict):
                return None
            reference = schema.get("$ref")
            if reference is None:
                return schema
            found = self._at(reference)
            if not isinstance(found, dict):
                return None
            rest = {name: value for name, value in schema.items() if name != "$ref"}
            schema = {**found, **rest}
        return None

    def _at(self, reference: Any) -> Any:
        if not isinstance(reference, str) or not reference.startswith("#"):
            return None
        found: Any = self._root
        for part in reference[1:].split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, dict) or name not in found:
                return None
            found = found[name]
        return found

    def _alternatives(self, schema: dict[str, Any]) -> list[Any] | None:
        """The forms that the value may have, or None when there is one only."""
        for key in ("anyOf", "oneOf"):
            if isinstance(schema.get(key), list):
                return [self._resolved(choice) for choice in schema[key]]
        kinds = schema.get("type")
        if isinstance(kinds, list) and not isinstance(schema.get("enum"), list):
            return [
                {"type": "null"} if kind == "null" else {**schema, "type": kind} for kind in kinds
            ]
        return None

    def _plain(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        if "const" in schema:
            return {"kind": "choice", "options": [_json(schema["const"])]}
        if isinstance(schema.get("enum"), list):
            return {"kind": "choice", "options": [_json(value) for value in schema["enum"]]}
        kind = schema.get("type", "object" if "properties" in schema else "")
        if kind == "object":
            return self._object(schema, depth)
        if kind == "array":
            return {"kind": "list", "item": self.node(schema.get("items", {}), depth + 1)}
        if kind == "string":
            form = schema.get("format")
            return {"kind": "text", **({"format": form} if form in FORMATS else {})}
        if kind == "null":
            return {"kind": "null"}
        return {"kind": SIMPLE.get(str(kind), "json")}

    def _object(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        properties = schema.get("properties")
        required = schema.get("required")
        if not isinstance(properties, dict):
            return {"kind": "json"} if depth else {"kind": "object", "fields": []}
        fields = [
            {
                **self.node(part, depth + 1),
                "name": name,
                "required": isinstance(required, list) and name in required,
            }
            for name, part in properties.items()
        ]
        return {"kind": "object", "fields": fields}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
