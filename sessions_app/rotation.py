"""Everything that is stored encrypted, brought under the newest key."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from django.apps import apps
from django.db import models, transaction
from django.db.models.functions import Cast

from dexweb.keys import newest_key
from sessions_app.models.encrypted import EncryptedTextField, opens


@dataclass
class Rotation:
    """How many values there are and how many of them were under an older key; those that none opens
    by name."""

    values: int = 0
    older: int = 0
    unreadable: list[str] = field(default_factory=list)


def rotate(change: bool = True) -> Rotation:
    """Encrypt anew what an older key opens; with ``change`` false only count it."""
    found = Rotation()
    for model, name in _fields():
        for key in list(model._base_manager.order_by("pk").values_list("pk", flat=True)):
            with transaction.atomic():
                _rotate(model, name, key, found, change)
    return found


def _rotate(model: type[models.Model], name: str, key: int, found: Rotation, change: bool) -> None:
    # Locked, so that a value that is entered meanwhile is not overwritten with the one before.
    rows = model._base_manager.filter(pk=key)
    stored = Cast(name, models.TextField())
    row = rows.select_for_update().defer(*_names(model)).annotate(stored=stored).first()
    if row is None or not row.stored:
        return
    found.values += 1
    if opens(row.stored, newest_key()):
        return
    if not opens(row.stored):
        found.unreadable.append(f"{name} of the {model._meta.verbose_name} {row}")
        return
    found.older += 1
    if change:
        rows.update(**{name: rows.values_list(name, flat=True).get()})


def _fields() -> Iterator[tuple[type[models.Model], str]]:
    for model in apps.get_models():
        for name in _names(model):
            yield model, name


def _names(model: type[models.Model]) -> list[str]:
    return [f.name for f in model._meta.concrete_fields if isinstance(f, EncryptedTextField)]
