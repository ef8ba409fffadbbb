"""Recording what the Flow says when no other Step carries it."""

from channels.db import database_sync_to_async as in_database
from temporalio import activity

from sessions_app.flow.state import RECORD_FACTS, RecordInput
from sessions_app.projection import record
from sessions_app.steps.heartbeat import heartbeats


@activity.defn(name=RECORD_FACTS)
async def record_facts(given: RecordInput) -> int:
    """Returns the number of the newest fact recorded."""
    async with heartbeats():
        return await in_database(record)(given.session_id, given.facts)
