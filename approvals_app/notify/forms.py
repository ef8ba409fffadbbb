"""What a person wants to be told."""

from typing import Any

from django import forms

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
