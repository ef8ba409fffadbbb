"""What people do with messages that wait for the agent, and with the settings of the next turn."""

import re

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_POST

from dexweb.engine.errors import InvalidSettings
from sessions_app import actions
from sessions_app.models import Message
from sessions_app.session_settings import patch_from_form
from sessions_app.views.detail import act_on, open_session, operating

NOTICE = "sessions/_notice.html"


@require_POST
@operating
def edit_message(request: HttpRequest, session_id: str, message_id: str) -> HttpResponse:
    text = request.POST.get("text", "")
    return act_on(
        request,
        session_id,
        lambda key: actions.edit_queued(request.user, session_id, message_id, text, key),
        form="edit",
        template=NOTICE,
        typed={"refused": "queue", "kept_text": text, "kept_words": "What you wrote"},
    )


@require_POST
@operating
def withdraw_message(request: HttpRequest, session_id: str, message_id: str) -> HttpResponse:
    """Its text is kept in the answer, so that a slip is undone by sending it again."""
    waiting = Message.objects.filter(session=session_id, message_id=message_id).first()
    told = {
        "kept_text": waiting.text if waiting else "",
        "kept_words": "Withdrawn; the agent will not read it. To take that back, send it again",
    }
    return act_on(
        request,
        session_id,
        lambda key: actions.delete_queued(request.user, session_id, message_id, key),
        form="withdraw",
        template=NOTICE,
        typed={"refused": "queue"},
        told=told,
    )


@require_POST
@operating
def steer_message(request: HttpRequest, session_id: str, message_id: str) -> HttpResponse:
    return act_on(
        request,
        session_id,
        lambda key: actions.steer(request.user, session_id, message_id, key),
        form="steer",
        template=NOTICE,
        typed={"refused": "queue"},
    )


@require_POST
@operating
def update_settings(request: HttpRequest, session_id: str) -> HttpResponse:
    """The form of the State tab; what is equal to the agent's is the agent's again."""
    session = open_session(session_id)
    typed = {name: request.POST.get(name, "") for name in ("model", "instructions", "settings")}
    revision = request.POST.get("revision", "")

    def act(key: str) -> None:
        if not re.fullmatch(r"[0-9]{1,9}", revision):
            raise InvalidSettings(errors=["Load the page anew: it does not say what it changed."])
        patch = patch_from_form(session.agent, session.settings, **typed)
        actions.update_settings(request.user, session_id, patch, int(revision), key)

    return act_on(
        request,
        session_id,
        act,
        form="settings",
        template="sessions/_settings_form.html",
        typed={"typed": typed},
    )
