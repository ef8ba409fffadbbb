"""Checks a tool call's arguments against the tool's JSON schema and says what is wrong."""

from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator, exceptions, validators
from referencing import Registry
from referencing.exceptions import NoSuchResource, Unresolvable

_MOST_ERRORS = 20
_LONGEST = 300


def validate_args(schema: Mapping[str, Any], args: object) -> list[str]:
    """What is wrong with `args`, one sentence each with its JSON path (`$.lines[0].amount: …`); []
    if nothing.

    A schema that is itself broken is reported as one error: the call cannot be checked, so it must
    not run. A `$ref` is followed inside the schema only, never over the network.
    """
    validator_class = validators.validator_for(schema, default=Draft202012Validator)
    try:
        validator_class.check_schema(schema)
        validator = validator_class(schema, registry=Registry(retrieve=_refuse))
        found = sorted(
            validator.iter_errors(args), key=lambda error: (error.json_path, error.message)
        )
    except exceptions.SchemaError as error:
        return [
            "The tool's own schema is broken, so its arguments cannot be checked:"
            f" {_short(error.message)}"
        ]
    except Unresolvable as error:
        return [f"The tool's own schema refers to something it does not hold: {_short(str(error))}"]
    except RecursionError:
        return ["The arguments are nested too deeply to be checked."]
    errors = [f"{error.json_path}: {_words(error)}" for error in found[:_MOST_ERRORS]]
    if len(found) > _MOST_ERRORS:
        errors.append(f"… and {len(found) - _MOST_ERRORS} more.")
    return errors


def _words(error: exceptions.ValidationError) -> str:
    if error.validator in ("anyOf", "oneOf") and error.context:
        choices = "; or ".join(dict.fromkeys(_short(choice.message) for choice in error.context))
        return _short(f"fits none of the allowed forms ({choices})")
    return _short(error.message)


def _refuse(uri: str) -> Any:
    raise NoSuchResource(ref=uri)


def _short(message: str) -> str:
    return message if len(message) <= _LONGEST else f"{message[: _LONGEST - 1]}…"
