"""A session whose approvals are news, and a server on this machine that is told of them."""

import json
import threading
from dataclasses import dataclass, field
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from django.utils import timezone

from approvals_app.models import (
    Interrupt,
    NotificationChannel,
    NotificationDelivery,
    NotificationPreference,
    PermissionKey,
)
from sessions_app import projection
from sessions_app.flow import fact, terms
from sessions_app.models import Session
from tests.sessions_app.api import build

KEY = "refunds.approve"


@dataclass
class News:
    """A session that its Flow's facts are recorded of, as a worker does it."""

    session: Session
    deadline: Any = field(default_factory=lambda: timezone.now() + timedelta(minutes=30))

    def tell(self, *bodies: Any) -> None:
        self.session.refresh_from_db()
        at = timezone.now().isoformat()
        first = self.session.last_fact + 1
        facts = [fact.Fact(first + n, at, body) for n, body in enumerate(bodies)]
        projection.record(self.session.pk, facts)

    def ask(
        self, name: str = "apr-1", tool: str = "shop__issue_refund", **policy: Any
    ) -> Interrupt:
        """An approval is asked for."""
        count = self.session.calls.count() + 1
        call_id = f"call-{count}"
        args = '{"order_id": "A-1042", "amount": 129.00}'
        call = build.call(self.session, call_id, args, tool=tool, position=count)
        frozen = terms.ApprovalPolicy(KEY, "high", 1800, "reject", **policy)
        self.tell(
            fact.ApprovalRequested(
                "approval_requested",
                name,
                f"AwaitToolApproval-{count}",
                call_id,
                1,
                KEY,
                "high",
                1,
                call.args_hash,
                self.deadline.isoformat(),
                "reject",
                frozen,
            )
        )
        return Interrupt.objects.get(pk=name)

    def close(self, state: str, by: Any = None, name: str = "apr-1") -> None:
        actor = terms.Actor(by.pk, by.get_username()) if by else None
        self.tell(fact.InterruptClosed("interrupt_closed", name, state, actor, "", "r-1"))


@pytest.fixture
def news(db):
    session = build.session(started_by=build.person("starter"))
    build.step(session, "RunModel-1", 1, text="The order came late.")
    return News(session)


@pytest.fixture
def approver(db):
    """Ann, who may decide and wants to be told of everything by mail."""
    return told_by_mail(build.person("ann", *build.LOOK, keys=(KEY,)))


@pytest.fixture
def allowed(settings):
    """Webhooks may lead to this machine."""
    settings.DEXWEB_WEBHOOK_ALLOW_PRIVATE = True


def told_by_mail(user: Any, *events: str) -> Any:
    user.email = f"{user.username}@example.com"
    user.save()
    NotificationPreference.objects.create(
        user=user, mail=True, **({"events": events} if events else {})
    )
    return user


def channel(kind: str, name: str = "", key: str = KEY, **fields: Any) -> NotificationChannel:
    row = NotificationChannel.objects.create(name=name or kind, kind=kind, **fields)
    row.keys.add(PermissionKey.objects.get_or_create(key=key)[0])
    return row


def deliveries() -> list[tuple[str, str, int]]:
    """(event, state, tries) of every delivery, in the order of what happened."""
    rows = NotificationDelivery.objects.order_by("notification_id", "next_try_at")
    return list(rows.values_list("notification__event", "state", "tries"))


@dataclass
class Receiver:
    """A web server that remembers what was posted, and answers as it is told."""

    url: str = ""
    posts: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    silent: threading.Event | None = None

    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, body in self.posts]


@pytest.fixture
def receiver():
    here = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            here.posts.append((dict(self.headers), body))
            if here.silent is not None:
                here.silent.wait(20)
                return
            self.send_response(here.status)
            for name, value in here.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(b"no" * 100_000 if here.status >= 400 else b"ok")

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    here.url = f"http://127.0.0.1:{server.server_port}/hook?team=1"
    yield here
    if here.silent is not None:
        here.silent.set()
    server.shutdown()
    server.server_close()
