"""Two people edit one row: the second is told, sees both, and overwrites nothing unawares."""

import hashlib
from collections.abc import Iterable
from typing import Any

from django import forms
from django.db.models import Manager, Model, QuerySet, URLField
from django.http import HttpRequest

from sessions_app.admin.audited import AuditedAdmin

#: Shown instead of a value that is nobody's to see.
NOT_SHOWN = "(not shown)"


def stamp(row: Model) -> str:
    """What a form remembers of its row: the revision, else a hash of what the row holds."""
    revision = getattr(row, "revision", None)
    return str(revision) if revision is not None else _digest(row)


def _digest(row: Model) -> str:
    values = [
        f"{field.name}={field.value_from_object(row)!r}"
        for field in row._meta.concrete_fields
        # Signing in is no edit.
        if field.name != "last_login"
    ]
    for field in row._meta.many_to_many:
        keys = field.remote_field.through._default_manager.filter(
            **{field.m2m_field_name(): row.pk}
        ).values_list(field.m2m_reverse_field_name(), flat=True)
        values.append(f"{field.name}={sorted(keys)}")
    return hashlib.sha256("\n".join(values).encode()).hexdigest()


class RevisionForm(forms.ModelForm):
    """Knows which version of the row it shows, and refuses to save over another.

    After a refusal ``conflict`` holds (label, theirs, yours) for every field that differs, and the
    form counts as having been shown the newer version: saving again is a choice, not an accident.
    """

    seen_revision = forms.CharField(widget=forms.HiddenInput, required=False)
    conflict: list[tuple[str, str, str]] | None = None
    #: Fields whose values are never shown, not even in a conflict.
    hidden_values: tuple[str, ...] = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk:
            self.initial["seen_revision"] = stamp(self.instance)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if self.instance.pk:
            self._refuse_if_stale(cleaned)
        return cleaned

    def stored_rows(self) -> QuerySet[Any]:
        """Where the row is read from again."""
        return type(self.instance)._default_manager.all()

    def _refuse_if_stale(self, cleaned: dict[str, Any]) -> None:
        # The admin saves in one transaction: with the row locked, what is true here stays true.
        theirs = self.stored_rows().select_for_update().get(pk=self.instance.pk)
        now = stamp(theirs)
        if cleaned.get("seen_revision") == now:
            return
        self.conflict = list(self._differences(theirs, cleaned))
        self.data = self.data.copy()
        self.data[self.add_prefix("seen_revision")] = now
        self.add_error(
            None,
            "Somebody else saved this while you were editing. Nothing of yours was saved, and "
            "nothing of theirs is lost. Compare the two versions; then save again to replace "
            "theirs with yours, or reload the page to keep theirs.",
        )

    def _differences(
        self, theirs: Model, cleaned: dict[str, Any]
    ) -> Iterable[tuple[str, str, str]]:
        for name, field in self.fields.items():
            if name == "seen_revision" or name not in cleaned:
                continue
            if name in self.hidden_values:
                if cleaned[name]:
                    yield str(field.label), NOT_SHOWN, NOT_SHOWN
                continue
            if not hasattr(theirs, name):
                continue
            there, here = _words(getattr(theirs, name)), _words(cleaned[name])
            if there != here:
                yield str(field.label or name), there, here


def _words(value: Any) -> str:
    if isinstance(value, Manager):
        value = value.all()
    if hasattr(value, "model") or isinstance(value, list | tuple | set):
        return ", ".join(sorted(str(item) for item in value)) or "(none)"
    return "(none)" if value in (None, "") else str(value)


class RevisionAdmin(AuditedAdmin):
    """Saves with `RevisionForm`; each save raises the row's revision, its inlines' included."""

    form = RevisionForm
    change_form_template = "admin/revision_change_form.html"

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """The hidden field belongs to the form, so that no page of ours can forget it."""
        fieldsets = list(super().get_fieldsets(request, obj))
        title, options = fieldsets[0]
        names = [name for name in options["fields"] if name != "seen_revision"]
        if self.has_change_permission(request, obj):
            names.append("seen_revision")
        return [(title, {**options, "fields": names}), *fieldsets[1:]]

    def formfield_for_dbfield(self, db_field: Any, request: Any, **kwargs: Any) -> Any:
        if isinstance(db_field, URLField):
            kwargs["assume_scheme"] = "https"
        return super().formfield_for_dbfield(db_field, request, **kwargs)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        if change and hasattr(obj, "revision"):
            obj.revision = (
                type(obj)._default_manager.values_list("revision", flat=True).get(pk=obj.pk) + 1
            )
        super().save_model(request, obj, form, change)
