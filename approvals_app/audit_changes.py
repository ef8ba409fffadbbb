"""What somebody changed in the settings, for the audit log: before and after, and no secret."""

import hashlib
from collections.abc import Iterable
from typing import Any

from django.db.models import Field, Model

from approvals_app import audit
from sessions_app.models.encrypted import EncryptedTextField

#: These may hold a secret against all advice: that they changed is said, not what they hold.
CLOSED = frozenset({"password", "env", "headers", "command", "url", "settings"})
#: Of no interest by themselves.
LEFT_OUT = frozenset({"id", "revision", "updated_at", "created_at", "last_login", "date_joined"})
LONGEST = 500
CHANGED = "changed"


def snapshot(row: Model, parts: Iterable[str] = ()) -> dict[str, Any]:
    """What ``row`` holds in the database now, by name; ``parts`` are relations to rows of its own.

    A closed value stands there as a digest, which `differences` never lets out.
    """
    stored = type(row)._base_manager.filter(pk=row.pk).defer(*_secrets(type(row))).first()
    if stored is None:
        return {}
    held = _fields(stored)
    for relation in stored._meta.many_to_many:
        held[relation.name] = sorted(str(item) for item in getattr(stored, relation.name).all())
    for part in parts:
        for child in getattr(stored, part).all():
            for name, value in _fields(child, relations=False).items():
                held[f"{part}.{child}.{name}"] = value
    return held


def differences(before: dict[str, Any], after: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """``{name: {before, after}}`` of what differs; None stands for what was not there."""
    found: dict[str, dict[str, Any]] = {}
    for name in sorted({*before, *after}):
        was, now = before.get(name), after.get(name)
        if was == now:
            continue
        if name.rpartition(".")[2] in CLOSED:
            found[name] = {"before": None if not before else "(not shown)", "after": CHANGED}
        else:
            found[name] = {"before": was, "after": now}
    return found


def record_change(
    actor: Any,
    row: Model,
    before: dict[str, Any],
    after: dict[str, Any],
    secrets: Iterable[str] = (),
) -> None:
    """One entry for a row that was made, changed or deleted; none when all is as it was.

    ``secrets`` are names of values that were set anew and are never read.
    """
    changes = differences(before, after)
    for name in secrets:
        changes[name] = {"before": "(not shown)" if before else None, "after": CHANGED}
    if not changes:
        return
    what = "created" if not before else "changed" if after else "deleted"
    if what == "deleted":
        changes = {}
    audit.record(actor, f"{kind_of(row)}.{what}", subject_of(row), changes=changes)


def kind_of(row: Model) -> str:
    return str(row._meta.model_name)


def subject_of(row: Model) -> str:
    """By the name that people know it by, which stays when the row is gone."""
    name = next(
        (getattr(row, field) for field in ("name", "key", "username") if hasattr(row, field)),
        row.pk,
    )
    return f"{kind_of(row)}:{name}"


def _secrets(model: type[Model]) -> list[str]:
    return [f.name for f in model._meta.concrete_fields if isinstance(f, EncryptedTextField)]


def _fields(row: Model, relations: bool = True) -> dict[str, Any]:
    secrets = _secrets(type(row))
    return {
        field.name: _value(row, field)
        for field in row._meta.concrete_fields
        if field.name not in LEFT_OUT and field.name not in secrets
        if relations or not field.is_relation
    }


def _value(row: Model, field: "Field[Any, Any]") -> Any:
    value = field.value_from_object(row)
    if field.is_relation:
        model: Any = field.related_model
        rows = model._base_manager.defer(*_secrets(model))
        return str(rows.filter(pk=value).first() or "")
    if field.name in CLOSED:
        return _digest(value) if value else ""
    if isinstance(value, bool | int | None):
        return value
    text = value if isinstance(value, str | list | dict) else str(value)
    if isinstance(text, str) and len(text) > LONGEST:
        left = f"{len(text) - LONGEST:,} more characters"
        return f"{text[:LONGEST]} … and {left} (SHA-256 {_digest(text)[:16]}…)"
    return text


def _digest(value: Any) -> str:
    return hashlib.sha256(repr(value).encode("utf-8", "replace")).hexdigest()
