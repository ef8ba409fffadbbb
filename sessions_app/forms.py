"""Forms of the session pages."""

import uuid

from django import forms
from django.conf import settings

from sessions_app.models import Agent
from sessions_app.models.agents import AgentQuerySet


class StartSessionForm(forms.Form):
    """What a session starts with. ``request_id`` makes sending it twice start one session."""

    agent = forms.ModelChoiceField(
        queryset=Agent.objects.none(),
        to_field_name="name",
        error_messages={
            "required": "Choose an agent.",
            "invalid_choice": "This agent is not there any more, or is disabled. Choose another.",
        },
    )
    title = forms.CharField(required=False, max_length=200)
    message = forms.CharField(
        strip=False, error_messages={"required": "Write something for the agent first."}
    )
    request_id = forms.UUIDField(
        error_messages={
            "required": "This form is incomplete. Load it anew.",
            "invalid": "This form is damaged. Load it anew.",
        }
    )

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self.fields["agent"].queryset = startable_agents()  # type: ignore[attr-defined]

    def clean_message(self) -> str:
        message: str = self.cleaned_data["message"].replace("\r\n", "\n")
        if not message.strip():
            raise forms.ValidationError("Write something for the agent first.")
        size = len(message.encode(errors="replace"))
        limit = settings.DEXWEB_LIMIT_MESSAGE
        if size > limit:
            raise forms.ValidationError(
                f"This is {size:,} bytes; the limit is {limit:,}. Shorten it."
            )
        return message


def startable_agents() -> AgentQuerySet:
    """Enabled agents, with what a person chooses them by."""
    return Agent.objects.enabled().prefetch_related("connections__tools", "tools")


def new_request_id() -> str:
    return str(uuid.uuid4())
