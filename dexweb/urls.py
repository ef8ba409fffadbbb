"""All addresses of Dexweb. The socket addresses are in routing.py."""

from django.contrib import admin
from django.contrib.auth.decorators import login_not_required
from django.urls import include, path
from django.views.generic import RedirectView

from dexweb import health
from dexweb.metrics import Metrics

urlpatterns = [
    path("", login_not_required(RedirectView.as_view(pattern_name="session-list"))),
    path("", include("sessions_app.urls")),
    path("", include("approvals_app.audit_urls")),
    path("", include("approvals_app.urls")),
    path("account/", include("approvals_app.notify.urls")),
    path("accounts/", include("dexweb.accounts")),
    path("admin/", admin.site.urls),
    path("api/v1/", include("sessions_app.api.urls")),
    path("api/", include("dexweb.api_docs")),
    path("healthz", health.healthz),
    path("healthz/", health.healthz),
    path("readyz", health.readyz),
    path("readyz/", health.readyz),
    path("metrics", Metrics.as_view(), name="metrics"),
    path("metrics/", Metrics.as_view()),
]
