"""Pages of a person's own account, at /account/."""

from django.urls import path

from approvals_app.notify import views

urlpatterns = [
    path("notifications/", views.preferences, name="notification-preferences"),
]
