"""What pages and graphs cost, measured."""

import statistics
import time
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client
from django.utils import timezone

from sessions_app.graph.model import GraphStep, build_parts
from sessions_app.graph.service import part_view
from sessions_app.models import Agent, Session

ROWS = 100_000


def milliseconds(times: list[float]) -> str:
    p95 = statistics.quantiles(times, n=20)[-1]
    return f"p50 {statistics.median(times) * 1000:.1f} ms, p95 {p95 * 1000:.1f} ms"


@pytest.mark.bench
@pytest.mark.django_db
def test_sessions_list(client: Client) -> None:
    agent = Agent.objects.create(name="desk", model="demo:script")
    now = timezone.now()
    Session.objects.bulk_create(
        (
            Session(
                id=f"desk-{number:08d}",
                agent=agent,
                title=f"Session {number}",
                status="running" if number % 10 == 0 else "completed",
                phase="waiting_approval" if number % 100 == 0 else "idle",
                waiting=int(number % 100 == 0),
                created_at=now,
                updated_at=now - timedelta(seconds=number),
            )
            for number in range(ROWS)
        ),
        batch_size=2000,
    )
    client.force_login(User.objects.create_superuser("boss"))
    for address in (
        "/sessions/",
        "/sessions/?status=running",
        "/sessions/?waiting=1",
        "/sessions/?q=777",
    ):
        times = []
        for _ in range(40):
            began = time.perf_counter()
            assert client.get(address).status_code == 200
            times.append(time.perf_counter() - began)
        print(
            f"\nsessions list at {ROWS:,} rows, {address}: {milliseconds(times)} (budget at 1M: 60 ms)"
        )


@pytest.mark.bench
def test_graph_of_100_steps() -> None:
    steps = [
        GraphStep(
            step_id=f"CallTool-{number}",
            type="CallTool",
            status="completed",
            turn=1,
            causes=(f"CallTool-{max(0, number - 1 - number % 4)}",) if number else (),
            tool=f"shop__tool_{number % 7}",
        )
        for number in range(100)
    ]
    (part,) = build_parts(steps)
    cold, cached = [], []
    for _ in range(20):
        cache.clear()
        for times in (cold, cached):
            began = time.perf_counter()
            assert part_view(part).svg
            times.append(time.perf_counter() - began)
    print(f"\ngraph of 100 steps, cold: {milliseconds(cold)} (budget 150 ms)")
    print(f"graph of 100 steps, cached: {milliseconds(cached)} (budget 5 ms)")
