"""Sessions on the real engine, with real worker processes that a test may kill."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit, urlunsplit

import pytest
import yaml
from asgiref.sync import async_to_sync
from django.conf import settings
from django.contrib.auth.models import Group, Permission, User
from django.db import connection

from approvals_app.decisions import decide
from approvals_app.models import Decision, Interrupt, PermissionKey
from dexweb.engine.client import SessionEngine
from dexweb.engine.embedded import dies_with_parent
from dexweb.engine.errors import DexwebError, NoWorker
from sessions_app import actions
from sessions_app.agents_yaml import load_agents
from sessions_app.models import Session, ToolCall
from tests import forks
from tests.replays import assert_replays

PATIENCE = 45.0
HEARTBEAT = 2.0


def until(reached: Callable[[], Any], what: str = "", patience: float = PATIENCE) -> Any:
    """The first true answer of ``reached``; fails with ``what`` was waited for after a while."""
    give_up = time.monotonic() + patience
    while time.monotonic() < give_up:
        answer = reached()
        if answer:
            return answer
        time.sleep(0.03)
    raise AssertionError(f"waited {patience:.0f} s in vain: {what or reached}")


class WorkerProcess:
    """A worker of its own, on the tests' database and engine; ``code`` is a folder with a manage.py."""

    # What the settings of the first one were read from: the others are forked with the same.
    begun_with: dict[str, str] | None = None

    def __init__(self, pool: str = "default", *options: str, code: Path | None = None) -> None:
        self.log = Path(settings.DEXWEB_VAR) / f"worker-{uuid.uuid4().hex[:6]}.log"
        self.process = self._start(code, "--pool", pool, *options)
        until(lambda: b"is ready" in self.log.read_bytes() or self.process.poll() is not None)
        assert self.process.poll() is None, self.log.read_text()

    def _start(
        self, code: Path | None, *options: str
    ) -> forks.ForkedWorker | subprocess.Popen[bytes]:
        """Forked, unless it needs other code or other settings than those before it."""
        self.log.touch()
        environment = {
            **{name: value for name, value in os.environ.items() if name.startswith("DEXWEB_")},
            "DEXWEB_VAR": str(settings.DEXWEB_VAR),
            "DATABASE_URL": database_url(),
            "DEXWEB_TEMPORAL_ADDRESS": settings.DEXWEB_TEMPORAL_ADDRESS,
            # Any worker sends what is to be sent, so all of them may reach the tests' receivers.
            "DEXWEB_WEBHOOK_ALLOW_PRIVATE": "true",
        }
        if WorkerProcess.begun_with is None:
            with patch.dict(os.environ, environment):
                forks.begin()
            WorkerProcess.begun_with = environment
        if code is None and environment == WorkerProcess.begun_with:
            return forks.ForkedWorker(self.log, *options)
        with self.log.open("wb") as output:
            return subprocess.Popen(
                [sys.executable, "manage.py", "worker", *options],
                cwd=code or settings.BASE_DIR,
                env={**os.environ, **environment},
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=dies_with_parent(),
            )

    def kill(self) -> None:
        """As a crash would: no farewell, nothing flushed."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.kill()
            raise


def database_url() -> str:
    """The test database, as a child process finds it."""
    name = connection.settings_dict["NAME"]
    if connection.vendor == "sqlite":
        return f"sqlite:///{name}"
    # The URL that the tests were given, with the test database's name in place of its own.
    given = urlsplit(os.environ["DATABASE_URL"])
    return urlunsplit(given._replace(path=f"/{name}"))


@pytest.fixture(scope="session")
def standing_worker(django_db_setup: None, temporal_engine: Any) -> Iterator[None]:
    """One worker for all tests that kill none."""
    worker = WorkerProcess("standing")
    yield
    worker.stop()


@pytest.fixture
def live(transactional_db: None, temporal_engine: Any) -> Iterator["Live"]:
    heartbeat, timeout = settings.DEXWEB_HEARTBEAT_TIMEOUT, settings.DEXWEB_ENGINE_TIMEOUT
    settings.DEXWEB_HEARTBEAT_TIMEOUT = HEARTBEAT
    # On a busy machine a worker that was just started takes a while to answer.
    settings.DEXWEB_ENGINE_TIMEOUT = PATIENCE
    world = Live(emptied(Path(settings.DEXWEB_VAR) / "shop.sqlite3"))
    yield world
    world.end()
    settings.DEXWEB_HEARTBEAT_TIMEOUT, settings.DEXWEB_ENGINE_TIMEOUT = heartbeat, timeout


def emptied(shop: Path) -> Path:
    """The shop's books without what earlier tests had written; its servers may go on serving them."""
    if shop.exists():
        with closing(sqlite3.connect(shop, timeout=20)) as books, books:
            for table in ("refunds", "emails", "lookups"):
                books.execute(f"DELETE FROM {table}")
    return shop


@dataclass
class Live:
    """What a test says to the world, and sees of it."""

    shop: Path
    workers: list[WorkerProcess] = field(default_factory=list)

    def worker(
        self, pool: str = "default", *options: str, code: Path | None = None
    ) -> WorkerProcess:
        worker = WorkerProcess(pool, *options, code=code)
        self.workers.append(worker)
        return worker

    def person(self, name: str, *keys: str, operates: bool = True, sees: bool = True) -> User:
        """A signed-up person who holds these permission keys."""
        user = User.objects.create_user(name)
        group = Group.objects.create(name=f"{name}'s")
        names = ["view_session", "view_interrupt"] if sees else []
        names += ["operate_session"] if operates else []
        group.permissions.set(Permission.objects.filter(codename__in=names))
        user.groups.add(group)
        for key in keys:
            PermissionKey.objects.get_or_create(key=key)[0].groups.add(group)
        return User.objects.get(pk=user.pk)

    def agent(
        self,
        script: list[dict[str, Any]] | None = None,
        delay: str = "",
        deadline: str = "30m",
        timeout: str = "2m",
        name: str = "desk",
        pool: str = "default",
        approval: dict[str, Any] | None = None,
        more: dict[str, Any] | None = None,
        tool_terms: dict[str, dict[str, Any]] | None = None,
    ) -> str:
        """An agent with the shop's tools, on a script (or the refund desk without one).

        ``more`` is of the agent, ``tool_terms`` of its tools, as the agents' file writes them.
        """
        asks = {"permission": "refunds.approve", "risk": "high", "deadline": deadline}
        tools = {
            "shop__lookup_order": {"effect": "read", "timeout": timeout},
            "shop__search_policy": {"effect": "read"},
            "shop__send_email": {"effect": "idempotent", "timeout": timeout},
            "shop__issue_refund": {
                "effect": "write",
                "timeout": timeout,
                "approval": {**asks, **(approval or {})},
            },
        }
        for tool, terms in (tool_terms or {}).items():
            tools[f"shop__{tool}"] = {**tools[f"shop__{tool}"], **terms}
        env = {"SHOP_DB": str(self.shop), "SHOP_DELAY": delay}
        command = ["python", "-m", "sessions_app.tools.shop"]
        definition: dict[str, Any] = {
            "model": "demo:script" if script else "demo:refund-desk",
            "connections": ["shop"],
            "pool": pool,
            "tools": tools,
            "settings": {"script": script, "word_delay": 0} if script else {"word_delay": 0},
            **(more or {}),
        }
        load_agents(
            yaml.safe_dump(
                {
                    "connections": {"shop": {"transport": "stdio", "command": command, "env": env}},
                    "agents": {name: definition},
                }
            )
        )
        return name

    def start(
        self, user: User, agent: str = "desk", message: str = "Order A-1042 came late."
    ) -> Session:
        return actions.start_session(
            user, agent=agent, message=message, request_id=str(uuid.uuid4())
        )

    def ask(self, session: Session) -> Interrupt:
        """The approval that the session waits for."""
        return until(
            lambda: session.interrupts.pending().first(), f"an approval: {self.state(session)}"
        )

    def decide(
        self,
        user: User,
        interrupt: Interrupt,
        verdict: str = "approve",
        reason: str = "",
        request_id: str = "",
        args: str = "",
    ) -> Decision:
        return decide(
            user,
            interrupt.pk,
            verdict=verdict,
            revision=interrupt.revision,
            args_hash=interrupt.args_hash,
            reason=reason or ("No." if verdict == "reject" else ""),
            args=args,
            request_id=request_id or str(uuid.uuid4()),
        )

    def ask_anew(self, session: Session, voided: Interrupt) -> Interrupt:
        """The approval that is asked for after ``voided`` was not good enough to run on."""
        fresh: Interrupt = until(
            lambda: session.interrupts.pending().exclude(pk=voided.pk).first(),
            f"a fresh request: {self.state(session)}",
        )
        voided.refresh_from_db()
        assert voided.state == "invalidated"
        assert self.ledger("refunds") == []
        return fresh

    def stop(self, user: User, session: Session) -> None:
        actions.stop(user, session.pk, "cancel", "", str(uuid.uuid4()))

    def idle(self, session: Session, turn: int = 1) -> Session:
        """The session once its turn has ended."""

        def reached() -> bool:
            session.refresh_from_db()
            return (
                session.phase == "idle"
                and session.turn >= turn
                and not session.turns.filter(state="running").exists()
            )

        until(reached, f"idle: {self.state(session)}")
        return session

    def call(self, session: Session, tool: str) -> ToolCall:
        return session.calls.get(tool=f"shop__{tool}")

    def begun(self, session: Session, tool: str, table: str) -> None:
        """Wait until the tool is at work: the shop itself has written that it was called."""
        until(lambda: self.ledger(table), f"{tool} to begin: {self.state(session)}")

    def ledger(self, table: str) -> list[tuple[Any, ...]]:
        """The rows of the shop's own books."""
        if not self.shop.exists():
            return []
        with closing(sqlite3.connect(self.shop)) as shop:
            try:
                return shop.execute(f"SELECT * FROM {table}").fetchall()
            except sqlite3.OperationalError:
                return []

    def state(self, session: Session) -> str:
        session.refresh_from_db()
        steps = [f"{s.step_id}={s.status}/{s.outcome} {s.detail}" for s in session.steps.all()]
        return f"{session.status}/{session.phase} {steps}"

    def end(self) -> None:
        sessions = list(Session.objects.all())
        async_to_sync(replay)([(one.pk, run) for one in sessions for run in runs_of(one)])
        for session in sessions:
            if session.open:
                with suppress(DexwebError):
                    async_to_sync(SessionEngine().terminate)(session.pk, "the test is over")
        for worker in self.workers:
            if worker.process.poll() is None:
                worker.kill()


def insist(act: Callable[[str], Any]) -> None:
    """Do as one is told where no worker answers yet: ask again, with the same request id."""
    request_id = str(uuid.uuid4())

    def done() -> bool:
        try:
            act(request_id)
        except NoWorker:
            return False
        return True

    until(done, "a worker that answers")


def runs_of(session: Session) -> list[str]:
    told = session.events.filter(type__in=["session.started", "session.continued"])
    return [payload["run_id"] for payload in told.values_list("payload", flat=True)]


async def replay(runs: list[tuple[str, str]]) -> None:
    """Whatever a test made a Flow do, in any of its runs, the same code replays it.

    With DEXWEB_TEST_SAVE_HISTORIES=1 its last history is saved for the code to come.
    """
    client = await SessionEngine().client()
    for session_id, run_id in runs:
        history = await client.get_workflow_handle(session_id, run_id=run_id).fetch_history()
        await assert_replays(history)
        if os.environ.get("DEXWEB_TEST_SAVE_HISTORIES"):
            name = os.environ["PYTEST_CURRENT_TEST"].split("::")[-1].split(" ")[0]
            Path("tests/histories/unreleased", f"{name}.json").write_text(history.to_json())


def engine_holds(session: Session, text: str) -> bool:
    """Whether the history of the session's newest run has ``text`` anywhere, as the engine has it."""

    async def history() -> bytes:
        client = await SessionEngine().client()
        found = await client.get_workflow_handle(session.pk).fetch_history()
        # Not as JSON: that would spell what is stored in base64.
        return b"".join(event.SerializeToString() for event in found.events)

    return text.encode() in async_to_sync(history)()


def assert_stream_is_whole(session: Session) -> None:
    """Every event once, in order; what is missing was for live viewers only."""
    numbers = list(session.events.order_by("seq").values_list("seq", flat=True))
    assert numbers == sorted(set(numbers))
    session.refresh_from_db()
    assert numbers[-1] <= session.last_seq
