"""Pages of approvals."""

from django.urls import path

from approvals_app import views, views_delegations, views_inbox, views_questions

urlpatterns = [
    path("approvals/", views_inbox.approval_list, name="approval-list"),
    path("approvals/batch/", views_inbox.approval_batch, name="approval-batch"),
    path("approvals/<slug:interrupt_id>/", views.approval_page, name="approval"),
    path("approvals/<slug:interrupt_id>/panel/", views.approval_panel, name="approval-panel"),
    path("approvals/<slug:interrupt_id>/decide/", views.decide, name="approval-decide"),
    path("approvals/<slug:interrupt_id>/answer/", views_questions.answer, name="approval-answer"),
    path("approvals/<slug:interrupt_id>/edit/", views.edit, name="approval-edit"),
    path("approvals/<slug:interrupt_id>/hold/", views.hold, name="approval-hold"),
    path("approvals/<slug:interrupt_id>/release/", views.release, name="approval-release"),
    path("approvals/<slug:interrupt_id>/take-over/", views.take_over, name="approval-take-over"),
    path("approvals/<slug:interrupt_id>/extend/", views.extend, name="approval-extend"),
    path(
        "approvals/<slug:interrupt_id>/arguments/", views.arguments_raw, name="approval-arguments"
    ),
    path("delegations/", views_delegations.delegation_list, name="delegation-list"),
    path(
        "delegations/<int:delegation_id>/revoke/",
        views_delegations.delegation_revoke,
        name="delegation-revoke",
    ),
]
