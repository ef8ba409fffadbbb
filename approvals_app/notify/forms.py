"""What a person wants to be told."""

from typing import Any

from django import forms
from django.db import transaction

from approvals_app import audit
from approvals_app.audit_changes import differences
from approvals_app.models import NotificationEvent, NotificationPreference


def preference_of(user: Any) -> NotificationPreference:
    """The person's row, or the one that saving would make."""
    found = NotificationPreference.objects.filter(user=user).first()
    return found or NotificationPreference(user=user)


class EventsField(forms.MultipleChoiceField):
    """Some of the events, in words, as a row of boxes; their keys are kept as a list."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            choices=NotificationEvent.choices, widget=forms.CheckboxSelectMultiple, **kwargs
        )


class PreferenceForm(forms.ModelForm):
    events = EventsField(required=False, label="Tell me when")

    class Meta:
        model = NotificationPreference
        fields = ["mail", "events"]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if cleaned.get("mail") and not cleaned.get("events"):
            self.add_error("events", "Choose at least one, or turn mails off.")
        return cleaned


@transaction.atomic
def save_preference(user: Any, form: PreferenceForm) -> None:
    """Keep what ``user`` chose; in the audit log with before and after, if it is another choice."""
    before = _choice(preference_of(user))
    after = _choice(form.save())
    changes = differences(before, after)
    if changes:
        subject = f"user:{user.get_username()}"
        audit.record(user, "notificationpreference.changed", subject, changes=changes)


def _choice(preference: NotificationPreference) -> dict[str, Any]:
    return {"mail": preference.mail, "events": preference.events}
