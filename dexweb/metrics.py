"""How the installation stands, in numbers, for Prometheus. All of it is counted in the database, so
every web process answers the same.
"""

from collections.abc import Iterator
from typing import Any

from django.db.models import Count, F, Sum
from django.http import HttpResponse
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric, SummaryMetricFamily
from prometheus_client.registry import Collector
from rest_framework.request import Request
from rest_framework.views import APIView

from sessions_app.api.permissions import VIEW_SESSION, HoldsPermissions
from sessions_app.api.renderers import ExactJSONRenderer


class PlainRenderer(ExactJSONRenderer):
    """For a scraper that accepts plain text only and is refused."""

    media_type = "text/plain"


class Metrics(APIView):
    """``GET /metrics``, with a token as the REST API takes it."""

    permission_classes = [HoldsPermissions]
    renderer_classes = [PlainRenderer, ExactJSONRenderer]
    reads = (VIEW_SESSION,)
    writes = ()
    schema = None

    def get(self, request: Request) -> HttpResponse:
        registry = CollectorRegistry()
        registry.register(Rows())
        return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


class Rows(Collector):
    """Counts rows at each scrape, in seven queries."""

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        from approvals_app.models import Decision, Interrupt
        from sessions_app.models import Session, Step

        sessions = Session.objects.order_by()
        yield _gauge("dexweb_sessions", "Sessions by status", "status", Session.Status, sessions)
        yield _gauge(
            "dexweb_running_sessions",
            "Running sessions by phase",
            "phase",
            Session.Phase,
            sessions.filter(status=Session.Status.RUNNING),
        )
        yield _gauge(
            "dexweb_approvals",
            "Approvals by state",
            "state",
            Interrupt.State,
            Interrupt.objects.order_by(),
        )
        decisions = Decision.objects.order_by()
        yield _gauge(
            "dexweb_decisions", "Decisions by delivery", "state", Decision.State, decisions
        )
        yield _delivery(decisions.filter(state=Decision.State.DELIVERED))
        yield from _slots()
        yield GaugeMetricFamily(
            "dexweb_steps_waiting_for_worker",
            "Model and tool calls that no worker has taken yet",
            value=Step.objects.waiting_for_worker().order_by().count(),
        )


def _gauge(name: str, words: str, field: str, values: Any, rows: Any) -> GaugeMetricFamily:
    """How many ``rows`` have each of ``values``, those that no row has as 0."""
    counts = dict(rows.values_list(field).annotate(Count("pk")))
    gauge = GaugeMetricFamily(name, words, labels=[field])
    for value in values.values:
        gauge.add_metric([value], counts.get(value, 0))
    return gauge


def _slots() -> Iterator[GaugeMetricFamily]:
    """Of the workers that are there; a pool that nobody serves has no sample."""
    from sessions_app.models import WorkerPresence

    labels = ["pool", "kind"]
    total = GaugeMetricFamily("dexweb_slots", "Slots of workers", labels=labels)
    used = GaugeMetricFamily("dexweb_slots_used", "Slots that run a Step", labels=labels)
    rows = WorkerPresence.objects.serving().order_by().values("pool")
    for row in rows.annotate(*map(Sum, ("model_slots", "model_used", "tool_slots", "tool_used"))):
        for kind in ("model", "tool"):
            total.add_metric([row["pool"], kind], row[f"{kind}_slots__sum"])
            used.add_metric([row["pool"], kind], row[f"{kind}_used__sum"])
    yield from (total, used)


def _delivery(delivered: Any) -> SummaryMetricFamily:
    taken = F("delivered_at") - F("created_at")
    found = delivered.aggregate(count=Count("pk"), whole=Sum(taken))
    whole = found["whole"]
    return SummaryMetricFamily(
        "dexweb_decision_delivery_seconds",
        "From a person's decision until the engine took it",
        count_value=found["count"],
        sum_value=whole.total_seconds() if whole else 0.0,
    )
