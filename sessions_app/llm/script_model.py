"""`demo:script`: plays a list of entries, one for each model call, so that a policy can be tried
without a model.

An entry is a mapping with
- `text`: what the model says, and/or `calls`: a list of `{tool, args}` it makes (text comes first),
  or
- `error`: the call fails with these words, as if the provider had answered with HTTP `status` (503
  unless told, which is worth a retry; 400 is not);
- `delay`: how long it thinks first, like `2s`;
- `repeat: true`, on any entry or alone at the end: once played out, the script starts over.

Which entry plays follows from the count of model calls made in the session so far. Failed calls
count too, but leave nothing in the history, so whoever knows the count gives it as
`model_call_index` (from 0); without it the replies in the history are counted. The attempts of one
call share one index: a retry meets the same entry, and so the same error. Where the last entry
makes calls, a closing sentence follows it by itself, so that a turn always ends and a repeating
script cannot run in a circle within one.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models.function import AgentInfo

from sessions_app.llm.demo_models import Call, Utterance
from sessions_app.tools.durations import duration_seconds

ENDED = "The script has ended."

_KEYS = {"text", "calls", "error", "status", "delay", "repeat"}
_DEFAULT_STATUS = 503


class ScriptPlayer:
    """Plays a script. Raises `ValueError` naming every fault of it at once."""

    def __init__(self, script: Any, model_call_index: int | None = None) -> None:
        faults = validate_script(script)
        if faults:
            raise ValueError("The script cannot be played. " + " ".join(faults))
        played = [entry for entry in script if set(entry) != {"repeat"}]
        self._repeats = any(entry.get("repeat") for entry in script)
        self._entries = [_utterance(entry) for entry in played]
        if self._entries[-1].calls:
            self._entries.append(Utterance(text=ENDED))
        self._index = model_call_index

    def decide(self, messages: list[ModelMessage], info: AgentInfo) -> Utterance:
        """The entry whose turn it is."""
        index = self._index
        if index is None:
            index = sum(isinstance(message, ModelResponse) for message in messages)
        if self._repeats:
            return self._entries[index % len(self._entries)]
        return self._entries[index] if index < len(self._entries) else Utterance(text=ENDED)


def validate_script(script: Any) -> list[str]:
    """What is wrong with a script, one sentence each; [] if it can be played."""
    if not isinstance(script, Sequence) or isinstance(script, str):
        return ["A script is a list of entries."]
    faults = [
        fault for number, entry in enumerate(script, 1) for fault in _entry_faults(number, entry)
    ]
    if not any(isinstance(entry, Mapping) and set(entry) - {"repeat"} for entry in script):
        faults.append("A script needs at least one entry with text, calls or error.")
    return faults


def _entry_faults(number: int, entry: Any) -> list[str]:
    where = f"Entry {number}:"
    if not isinstance(entry, Mapping):
        return [f"{where} write a mapping, like {{text: …}}."]
    faults = []
    unknown = sorted(str(key) for key in set(entry) - _KEYS)
    if unknown:
        faults.append(
            f"{where} {', '.join(unknown)} means nothing here;"
            f" known are {', '.join(sorted(_KEYS))}."
        )
    if not unknown and set(entry) != {"repeat"} and not {"text", "calls", "error"} & set(entry):
        faults.append(f"{where} it needs text, calls or error.")
    if "error" in entry and {"text", "calls"} & set(entry):
        faults.append(f"{where} an error stands alone, without text or calls.")
    if "status" in entry and "error" not in entry:
        faults.append(f"{where} status belongs to an error.")
    for key in ("text", "error"):
        if key in entry and (not isinstance(entry[key], str) or not entry[key].strip()):
            faults.append(f"{where} {key} must be a text that is not empty.")
    status = entry.get("status", _DEFAULT_STATUS)
    if isinstance(status, bool) or not isinstance(status, int) or not 400 <= status <= 599:
        faults.append(f"{where} status must be a number from 400 to 599.")
    if not isinstance(entry.get("repeat", False), bool):
        faults.append(f"{where} repeat is true or false.")
    if "delay" in entry:
        faults.extend(_delay_faults(where, entry["delay"]))
    if "calls" in entry:
        faults.extend(_call_faults(where, entry["calls"]))
    return faults


def _delay_faults(where: str, delay: Any) -> list[str]:
    try:
        duration_seconds(delay)
    except ValueError as error:
        return [f"{where} {error}"]
    return []


def _call_faults(where: str, calls: Any) -> list[str]:
    if not isinstance(calls, Sequence) or isinstance(calls, str) or not calls:
        return [f"{where} calls must be a list with at least one call."]
    faults = []
    for call in calls:
        if (
            not isinstance(call, Mapping)
            or not isinstance(call.get("tool"), str)
            or not call["tool"]
        ):
            faults.append(
                f"{where} a call needs a tool, like {{tool: shop__lookup_order, args: {{…}}}}."
            )
        elif set(call) - {"tool", "args"}:
            faults.append(f"{where} a call has only tool and args.")
        elif not isinstance(call.get("args", {}), Mapping):
            faults.append(f"{where} the args of {call['tool']} must be a mapping.")
    return faults


def _utterance(entry: Mapping[str, Any]) -> Utterance:
    pause = duration_seconds(entry.get("delay", 0))
    if "error" in entry:
        status = int(entry.get("status", _DEFAULT_STATUS))
        return Utterance(error=_error(status, entry["error"]), pause=pause)
    calls = tuple(Call(call["tool"], dict(call.get("args", {}))) for call in entry.get("calls", ()))
    return Utterance(text=entry.get("text", ""), calls=calls, pause=pause)


def _error(status: int, words: str) -> ModelHTTPError:
    from pydantic_ai import exceptions

    category: Any = exceptions.ModelRequestRejectedError
    if status == 401:
        category = exceptions.ModelAuthenticationError
    elif status == 429:
        category = exceptions.ModelRateLimitError
    elif status in (503, 529):
        category = exceptions.ModelOverloadedError
    elif status >= 500:
        category = exceptions.ModelServerError
    return ModelHTTPError.for_category(
        category, status_code=status, model_name="demo:script", body=words
    )
