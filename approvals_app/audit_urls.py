"""Pages of the audit log, and of insight."""

from django.urls import path

from approvals_app import audit_views, insight_views

urlpatterns = [
    path("audit/", audit_views.audit_log, name="audit-log"),
    path("audit/export.csv", audit_views.audit_export, {"kind": "csv"}, name="audit-csv"),
    path("audit/export.json", audit_views.audit_export, {"kind": "json"}, name="audit-json"),
    path("approvals/insight/", insight_views.insight, name="insight"),
]
