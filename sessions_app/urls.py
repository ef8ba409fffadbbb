"""Pages and fragments of sessions. Fragments are complete answers of their own, used by htmx."""

from django.urls import path

from sessions_app.views import agents, detail, listing, new, queue, spend, workers

urlpatterns = [
    path("sessions/", listing.session_list, name="session-list"),
    path("sessions/new/", new.session_new, name="session-new"),
    path("sessions/<slug:session_id>/", detail.session_page, name="session"),
    path("sessions/<slug:session_id>/head/", detail.head, name="session-head"),
    path("sessions/<slug:session_id>/graph/", detail.graph, name="session-graph"),
    path(
        "sessions/<slug:session_id>/conversation/", detail.conversation, name="session-conversation"
    ),
    path("sessions/<slug:session_id>/events/", detail.events, name="session-events"),
    path("sessions/<slug:session_id>/steps/<name:step_id>/", detail.step, name="session-step"),
    path(
        "sessions/<slug:session_id>/steps/<name:step_id>/raw/",
        detail.step_raw,
        name="session-step-raw",
    ),
    path("sessions/<slug:session_id>/messages/", detail.send_message, name="session-message"),
    path(
        "sessions/<slug:session_id>/queue/<name:message_id>/edit/",
        queue.edit_message,
        name="session-edit-message",
    ),
    path(
        "sessions/<slug:session_id>/queue/<name:message_id>/withdraw/",
        queue.withdraw_message,
        name="session-withdraw",
    ),
    path(
        "sessions/<slug:session_id>/queue/<name:message_id>/steer/",
        queue.steer_message,
        name="session-steer",
    ),
    path("sessions/<slug:session_id>/settings/", queue.update_settings, name="session-settings"),
    path("sessions/<slug:session_id>/raise-spend/", spend.raise_spend, name="session-raise-spend"),
    path("sessions/<slug:session_id>/cancel-turn/", detail.cancel_turn, name="session-cancel-turn"),
    path("sessions/<slug:session_id>/steps/<name:step_id>/skip/", detail.skip, name="session-skip"),
    path("sessions/<slug:session_id>/stop/", detail.stop, name="session-stop"),
    path("workers/", workers.worker_list, name="worker-list"),
    path("spend/", spend.spend, name="spend"),
    path("agents/", agents.agent_list, name="agent-list"),
    path("agents/<slug:name>/graph/", agents.agent_graph, name="agent-graph"),
]
