"""A box to type JSON in."""

import json
from copy import copy
from typing import Any

from django import forms
from django.core.exceptions import ValidationError


class JSONBox(forms.JSONField):
    """Says where a text stops being JSON, and keeps what was typed."""

    widget = forms.Textarea(attrs={"rows": 6, "cols": 80, "class": "mono", "spellcheck": "false"})

    def to_python(self, value: Any) -> Any:
        if isinstance(value, str) and value.strip():
            try:
                json.loads(value, parse_constant=_no_constant, object_pairs_hook=_no_repeats)
            except json.JSONDecodeError as error:
                raise ValidationError(
                    f"This is not JSON: {error.msg} in line {error.lineno}, column {error.colno}.",
                    code="invalid",
                ) from error
            except (ValueError, RecursionError) as error:
                raise ValidationError(f"This is not JSON: {error}.", code="invalid") from error
        found = super().to_python(value)
        return copy(self.empty_value) if found is None else found

    def prepare_value(self, value: Any) -> Any:
        """Laid out for reading; what was typed and refused stays as it was."""
        if isinstance(value, str):
            return super().prepare_value(value)
        return json.dumps(value, indent=2, ensure_ascii=False)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"“{name}” occurs twice")
        found[name] = value
    return found
