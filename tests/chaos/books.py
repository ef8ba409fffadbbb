"""What is read after the storm: the engine's histories and the shop's own ledger."""

import json
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowHistory

from dexweb.engine.client import SessionEngine
from sessions_app.models import Session
from tests.replays import quiet_tasks, replayer


@dataclass
class Ledger:
    """By call id: how often the shop did it, and (for refunds) whether it got to the end."""

    refunds: dict[str, list[str]] = field(default_factory=dict)
    emails: dict[str, int] = field(default_factory=dict)
    lookups: dict[str, int] = field(default_factory=dict)


def ledger(shop: Path) -> Ledger:
    found = Ledger()
    with closing(sqlite3.connect(shop)) as books:
        for call_id, status in books.execute("SELECT call_id, status FROM refunds"):
            found.refunds.setdefault(call_id, []).append(status)
        for table in ("emails", "lookups"):
            counts = getattr(found, table)
            for (call_id,) in books.execute(f"SELECT call_id FROM {table}"):
                counts[call_id] = counts.get(call_id, 0) + 1
    return found


@dataclass
class Story:
    """A session as the engine's own history tells it, over all its runs."""

    status: str
    facts: dict[int, dict[str, Any]] = field(default_factory=dict)
    outcomes: dict[str, list[str]] = field(default_factory=dict)
    accepted: list[str] = field(default_factory=list)
    unreplayable: str = ""

    def told(self, kind: str) -> list[dict[str, Any]]:
        """The bodies of the facts of one kind, in order."""
        bodies = (self.facts[number]["body"] for number in sorted(self.facts))
        return [body for body in bodies if body["kind"] == kind]


async def story_of(session: Session) -> Story:
    client = await SessionEngine().client()
    story = Story((await SessionEngine().snapshot(session.pk)).status)
    for run_id in [run async for run in _runs(session)]:
        history = await client.get_workflow_handle(session.pk, run_id=run_id).fetch_history()
        _read(story, history)
        result = await replayer().replay_workflow(history, raise_on_replay_failure=False)
        if result.replay_failure:
            kept = Path(tempfile.gettempdir()) / f"dexweb-chaos-{run_id}.json"
            kept.write_text(history.to_json())
            story.unreplayable = f"{result.replay_failure} (kept as {kept})"
        elif quiet := quiet_tasks(history):
            story.unreplayable = f"workflow tasks {quiet} left nothing"
    return story


async def _runs(session: Session) -> Any:
    told = session.events.filter(type__in=["session.started", "session.continued"])
    async for payload in told.order_by("seq").values_list("payload", flat=True):
        yield payload["run_id"]


def _read(story: Story, history: WorkflowHistory) -> None:
    scheduled: dict[int, dict[str, Any]] = {}
    for event in history.events:
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
            given = _json(event.activity_task_scheduled_event_attributes.input)
            scheduled[event.event_id] = given
            for fact in given.get("facts") or given.get("step", {}).get("facts") or []:
                story.facts[fact["n"]] = fact
        elif event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
            done = event.activity_task_completed_event_attributes
            given = scheduled[done.scheduled_event_id]
            call_id = given.get("call_id") or given.get("call", {}).get("call_id")
            if call_id:
                _note_outcome(story, call_id, _json(done.result))
        elif event.event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED:
            accepted = event.workflow_execution_update_accepted_event_attributes
            story.accepted.append(accepted.protocol_instance_id)


def _note_outcome(story: Story, call_id: str, result: dict[str, Any]) -> None:
    """Of an attempt that another one follows, there is no outcome yet."""
    if not result.get("retryable") and not result.get("ask_again"):
        story.outcomes.setdefault(call_id, []).append(result["outcome"])


def _json(payloads: Any) -> dict[str, Any]:
    found = [json.loads(payload.data) for payload in payloads.payloads]
    return found[0] if found and isinstance(found[0], dict) else {}


def duplicates(names: list[str]) -> Iterator[str]:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            yield name
        seen.add(name)
