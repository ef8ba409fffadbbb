"""A session that no worker can go on with says so, instead of standing still in silence."""

import uuid
from collections.abc import Iterator

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from temporalio import workflow
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from dexweb.engine.client import SessionEngine, connect
from dexweb.engine.embedded import engine_address
from dexweb.engine.errors import NoWorker
from sessions_app import actions
from sessions_app.flow.queues import flow_queue
from sessions_app.flow.state import SessionInput
from sessions_app.flow.terms import Actor
from sessions_app.models import Session
from sessions_app.reconcile import reconcile
from tests.live.conftest import until
from tests.sessions_app.api import build

TOLD = "Nondeterminism error: the history has another order"


@workflow.defn(name="Session")
class Unable:
    """A Flow that is to its worker as one whose history it cannot replay."""

    @workflow.run
    async def run(self, given: SessionInput) -> str:
        raise RuntimeError(TOLD)


@pytest.fixture
def stuck(transactional_db: None, temporal_engine: object) -> Iterator[Session]:
    session = build.session(f"stuck-{uuid.uuid4().hex[:8]}", phase="waiting_approval")

    async def tried() -> None:
        client = await connect(engine_address())
        given = SessionInput(session.pk, "refund-desk", "Stuck", "stuck", Actor(1, "ann"))
        await SessionEngine().start_session(given)
        async with Worker(
            client,
            task_queue=flow_queue("stuck"),
            workflows=[Unable],
            build_id="unable",
            workflow_runner=UnsandboxedWorkflowRunner(),
        ):
            await sync_to_async(until)(lambda: seen(session), "the worker to have tried")

    async_to_sync(tried)()
    yield session
    async_to_sync(SessionEngine().terminate)(session.pk, "the test is over")


def seen(session: Session) -> bool:
    reconcile(session.pk)
    session.refresh_from_db()
    return bool(session.stuck)


def test_it_is_told_on_its_page_and_in_the_list_with_what_the_worker_said(stuck, client):
    client.force_login(build.person("ann", "view_session"))
    page = client.get(f"/sessions/{stuck.pk}/").content.decode()
    assert "No worker can go on with this session" in page
    assert TOLD in page
    assert "Stuck</span>" in client.get("/sessions/").content.decode()
    event = stuck.events.get(type="session.stuck")
    assert TOLD in event.payload["reason"]
    reconcile(stuck.pk)
    assert stuck.events.count() == 1


def test_who_writes_to_it_is_told_what_the_worker_said(stuck):
    ann = build.person("ann", "operate_session", "view_session")
    with pytest.raises(NoWorker, match="No worker can go on with this session") as refusal:
        actions.send_message(ann, stuck.pk, "Hello?", str(uuid.uuid4()))
    assert TOLD in str(refusal.value)
