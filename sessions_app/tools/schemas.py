"""Checks a tool call's arguments against the tool's JSON schema and says what is wrong.

A schema is its server's word, and a pattern or a web of references in it can take longer than
anybody lives. So every check has a limit; what could run on where Python does not look up, inside
one match of a pattern, is done in a process of its own, which can be ended.
"""

import json
import math
import pickle
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator, exceptions, validators
from referencing import Registry
from referencing.exceptions import NoSuchResource, Unresolvable

LIMIT_SECONDS = 3.0
#: What a process takes to start, on a busy machine.
START_SECONDS = 5.0
_MOST_ERRORS = 20
_LONGEST = 300
_TOO_LONG = "Checking the arguments by the tool's own schema takes too long."
#: Keywords with a step that nothing can interrupt; a dialect inside would slip out of the limit.
_RUN_ON = frozenset({"pattern", "patternProperties", "uniqueItems", "$schema"})
_ROOT = Path(__file__).resolve().parent.parent.parent


def validate_args(schema: Mapping[str, Any], args: object) -> list[str]:
    """What is wrong with `args`, one sentence each with its JSON path (`$.lines[0].amount: …`); []
    if nothing.

    A schema that is itself broken, or takes too long, is reported as one error: the call cannot be
    checked, so it must not run. A `$ref` is followed inside the schema only, never over the network.
    """
    if not _may_run_on(schema):
        return _check(schema, args)
    try:
        checked = subprocess.run(
            [sys.executable, "-m", __name__, str(LIMIT_SECONDS)],
            # Not JSON, which knows no exact decimals.
            input=pickle.dumps((schema, args)),
            capture_output=True,
            cwd=_ROOT,
            timeout=LIMIT_SECONDS + START_SECONDS,
        )
        errors: list[str] = json.loads(checked.stdout)
    except (subprocess.TimeoutExpired, json.JSONDecodeError):
        return [_TOO_LONG]
    return errors


def _may_run_on(schema: Mapping[str, Any]) -> bool:
    """Whether a keyword of that kind stands anywhere but as the schema's own dialect."""
    left: list[Any] = [{name: part for name, part in schema.items() if name != "$schema"}]
    while left:
        part = left.pop()
        if isinstance(part, Mapping):
            if not _RUN_ON.isdisjoint(part):
                return True
            left += part.values()
        elif isinstance(part, list):
            left += part
    return False


def _check(schema: Mapping[str, Any], args: object) -> list[str]:
    dialect = validators.validator_for(schema, default=Draft202012Validator)
    try:
        dialect.check_schema(schema)
        validator = _limited(dialect)(schema, registry=Registry(retrieve=_refuse))
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
    except _TooLong:
        return [_TOO_LONG]
    except RecursionError:
        return ["The arguments are nested too deeply to be checked."]
    errors = [f"{error.json_path}: {_words(error)}" for error in found[:_MOST_ERRORS]]
    if len(found) > _MOST_ERRORS:
        errors.append(f"… and {len(found) - _MOST_ERRORS} more.")
    return errors


class _TooLong(Exception):
    """The time for one check is over."""


def _limited(dialect: Any) -> Any:
    """The dialect, whose every keyword looks at the clock first."""
    end = time.monotonic() + LIMIT_SECONDS

    def watched(keyword: Callable[..., Any]) -> Callable[..., Any]:
        def check(*given: Any) -> Iterator[exceptions.ValidationError]:
            if time.monotonic() > end:
                raise _TooLong
            yield from keyword(*given) or ()

        return check

    keywords = {name: watched(keyword) for name, keyword in dialect.VALIDATORS.items()}
    return validators.extend(dialect, keywords)


def _words(error: exceptions.ValidationError) -> str:
    if error.validator in ("anyOf", "oneOf") and error.context:
        choices = "; or ".join(dict.fromkeys(_short(choice.message) for choice in error.context))
        return _short(f"fits none of the allowed forms ({choices})")
    return _short(error.message)


def _refuse(uri: str) -> Any:
    raise NoSuchResource(ref=uri)


def _short(message: str) -> str:
    return message if len(message) <= _LONGEST else f"{message[: _LONGEST - 1]}…"


def _answer_in_this_process() -> None:
    """What `validate_args` starts: reads the schema and the arguments, writes the errors."""
    schema, args = pickle.load(sys.stdin.buffer)
    # By its own time, since whoever started this may be gone before it is over.
    spent = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    seconds = math.ceil(spent + float(sys.argv[1]))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    json.dump(_check(schema, args), sys.stdout)


if __name__ == "__main__":
    _answer_in_this_process()
