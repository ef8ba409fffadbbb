"""The admin's form of a channel."""

from typing import Any

from django import forms
from django.db.models import QuerySet

from approvals_app.models import NotificationChannel
from approvals_app.models.notifications import every_event
from approvals_app.notify import webhooks
from approvals_app.notify.errors import AddressRefused
from approvals_app.notify.forms import EventsField
from sessions_app.admin.revision import RevisionForm

SHORTEST_SECRET = 16
Kind = NotificationChannel.Kind


class ChannelForm(RevisionForm):
    """Address and secret go in and never come out."""

    events = EventsField(initial=every_event)
    new_url = forms.CharField(
        label="Webhook address",
        required=False,
        max_length=2000,
        widget=forms.PasswordInput(attrs={"autocomplete": "off", "size": 60}),
    )
    new_secret = forms.CharField(
        label="Signing secret",
        required=False,
        max_length=500,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password", "size": 60}),
    )
    hidden_values = ("new_url", "new_secret")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        stored = self._stored()
        for name, what in (("new_url", f"to {self.instance.host}"), ("new_secret", "stored")):
            if name not in self.fields:
                continue
            keep = f"Leave it blank to keep the present one ({what}). It is never shown."
            new = "It is stored encrypted and never shown again."
            self.fields[name].help_text = keep if stored[name] else new

    def stored_rows(self) -> QuerySet[NotificationChannel]:
        return NotificationChannel.objects.without_secrets()

    def clean_new_url(self) -> str:
        url: str = self.cleaned_data["new_url"].strip()
        if url:
            try:
                webhooks.checked(url)
            except AddressRefused as refusal:
                raise forms.ValidationError(str(refusal)) from refusal
        return url

    def clean_new_secret(self) -> str:
        secret: str = self.cleaned_data["new_secret"]
        if secret and len(secret) < SHORTEST_SECRET:
            raise forms.ValidationError(f"Use {SHORTEST_SECRET} characters or more.")
        return secret

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        kind, stored = cleaned.get("kind"), self._stored()
        if kind == Kind.MAIL and not cleaned.get("email"):
            self.add_error("email", "Enter the address that mails go to.")
        if kind in (Kind.SLACK, Kind.WEBHOOK):
            self._ask_for("new_url", stored, "Enter the address that is posted to.")
        if kind == Kind.WEBHOOK:
            self._ask_for("new_secret", stored, "Enter the secret that the receiver checks with.")
        return cleaned

    def _ask_for(self, name: str, stored: dict[str, bool], words: str) -> None:
        missing = not self.cleaned_data.get(name) and name not in self.errors
        if name in self.fields and missing and not stored[name]:
            self.add_error(name, words)

    def _stored(self) -> dict[str, bool]:
        """Which secrets the row has, told without reading them."""
        return {"new_url": bool(self.instance.host), "new_secret": self.instance.has_secret}
