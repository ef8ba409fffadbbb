"""What must be true after the storm. Each check yields a sentence for everything that is not."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

from django.db import connection

from approvals_app import audit
from approvals_app.models import AuditEntry, Decision, Interrupt
from sessions_app.models import Session, ToolCall
from tests.chaos import books
from tests.chaos.people import Person, Told

#: Outcomes by which a call has not run.
NEVER_RAN = ("rejected", "expired", "invalidated")
#: Why a decision that was kept may be refused when it arrives.
TOO_LATE = (
    "interrupt_already_decided",
    "interrupt_not_found",
    "session_closed",
    "session_not_found",
)
STATES = {"approve": ("approved", "invalidated"), "reject": ("rejected",)}


def complaints(shop: Path, people: list[Person]) -> list[str]:
    """Everything that is not as it was promised; empty when all is."""
    sessions = list(Session.objects.order_by("created_at"))
    stories = asyncio.run(_stories(sessions))
    found = [line for person in people for line in person.broken]
    found += effects(books.ledger(shop))
    found += decisions(people)
    found += answers(people)
    found += streams()
    for session in sessions:
        found += ends(session)
        found += agreement(session, stories[session.pk])
    found += audit_log()
    return found


async def _stories(sessions: list[Session]) -> dict[str, books.Story]:
    return {session.pk: await books.story_of(session) for session in sessions}


def effects(ledger: books.Ledger) -> Iterator[str]:
    """The shop's own books against each call's outcome."""
    calls = {call.call_id: call for call in ToolCall.objects.all()}
    for call_id in {*ledger.refunds, *ledger.emails, *ledger.lookups} - set(calls):
        yield f"the shop did {call_id}, of which we know nothing"
    approved = set(
        Interrupt.objects.filter(state="approved", decisions__state="delivered").values_list(
            "call_id", flat=True
        )
    )
    for call in calls.values():
        refunds = ledger.refunds.get(call.call_id, [])
        times = len(refunds) + ledger.emails.get(call.call_id, 0)
        what = f"{call.tool} {call.call_id} of {call.session_id} ({call.outcome}: {call.words})"
        if times > 1:
            yield f"ran {times} times: {what}"
        if times and call.policy.get("approval") and call.call_id not in approved:
            yield f"ran without a person's word: {what}"
        if call.outcome in NEVER_RAN and (times or call.call_id in ledger.lookups):
            yield f"ran all the same: {what}"
        if call.outcome == "completed" and call.effect != "read" and not times:
            yield f"never ran: {what}"
        if call.outcome == "completed" and "begun" in refunds:
            yield f"did not run to its end: {what}"
        if call.outcome in ("failed", "canceled") and times:
            yield f"took effect, and was said not to have: {what}"


def decisions(people: list[Person]) -> Iterator[str]:
    """What was acknowledged took effect, once, in the name of who said it."""
    for row in Decision.objects.exclude(state__in=["delivered", "refused"]):
        yield f"the decision {row.request_id} is still {row.state}"
    for row in Decision.objects.filter(state="delivered").select_related("interrupt", "actor"):
        interrupt = row.interrupt
        if interrupt.request_id != row.request_id:
            yield f"{row} is delivered, but {interrupt} was decided by {interrupt.request_id}"
        if interrupt.state not in STATES[row.verdict]:
            yield f"{row} is delivered, but {interrupt} is {interrupt.state}"
    for person in people:
        for told in person.told:
            if told.what == "decide":
                yield from _kept_word(person, told)


def _kept_word(person: Person, told: Told) -> Iterator[str]:
    rows = Decision.objects.filter(interrupt_id=told.target, actor__username=person.name)
    row = rows.exclude(state="refused").first() or rows.last()
    said = f"{person.name} was told {told.status} for {told.body['verdict']} {told.target}"
    if told.status == 200 and (row is None or row.state != "delivered"):
        yield f"{said}, but the decision is {row and row.state} {row and row.refusal}"
    if told.status == 200 and row is not None and row.verdict != told.body["verdict"]:
        yield f"{said}, but what counts is {row.verdict}"
    if told.status == 503 and row is None:
        yield f"{said}, that it is kept, and it is not"
    if (
        told.status == 503
        and row is not None
        and row.refusal.get("code", TOO_LATE[0]) not in TOO_LATE
    ):
        yield f"{said}, that it is kept, and it was refused with {row.refusal}"


def answers(people: list[Person]) -> Iterator[str]:
    """Sessions and messages that were acknowledged are there, once."""
    for person in people:
        for told in person.told:
            if told.what == "start" and told.status == 201:
                session = Session.objects.filter(pk=told.answer["id"])
                entries = AuditEntry.objects.filter(action="session.started")
                if not session.exists():
                    yield f"the session {told.answer['id']} was acknowledged and is not there"
                if entries.filter(session_id=told.answer["id"]).count() != 1:
                    yield f"the log does not say once that {told.answer['id']} was started"
            elif told.what == "send" and told.status == 202:
                session = Session.objects.get(pk=told.target)
                message = session.messages.filter(message_id=told.answer["id"]).first()
                if message is None:
                    yield f"a message to {told.target} was acknowledged and is not there"
                elif message.state == "queued" and session.open:
                    yield f"a message to {told.target} was never taken"
            elif told.status not in (200, 202, 409, 503):
                yield f"{person.name} was told {told.status} for {told.what}: {told.answer}"


def streams() -> Iterator[str]:
    """Every event was numbered once, from 1, without gaps: the witness saw each come."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT session_id, seq FROM chaos_witness ORDER BY rowid")
        seen: dict[str, list[int]] = {}
        for session_id, seq in cursor.fetchall():
            seen.setdefault(session_id, []).append(seq)
    for session in Session.objects.all():
        if seen.get(session.pk, []) != list(range(1, session.last_seq + 1)):
            yield f"the events of {session.pk} are not 1 to {session.last_seq}: {seen.get(session.pk)}"


def ends(session: Session) -> Iterator[str]:
    """It came to rest, and nothing is left behind that looks like work."""
    name = f"{session.pk} ({session.status}/{session.phase})"
    if session.open and session.phase != "idle":
        yield f"{name} did not come to rest"
    if session.waiting or session.interrupts.filter(state="pending").exists():
        yield f"{name} says that {session.waiting} people are waited for"
    for interrupt in session.interrupts.filter(hold_by_name__gt=""):
        yield f"{name}: {interrupt} is over and still held by {interrupt.hold_by_name}"
    for step in session.steps.filter(status__in=["planned", "scheduled", "active", "waiting"]):
        if not (session.open and step.type == "AwaitMessage"):
            yield f"{name}: the step {step.step_id} is left {step.status}"
    for call in session.calls.filter(outcome=""):
        yield f"{name}: {call} has no outcome"
    for turn in session.turns.all():
        if turn.state == "running" or (
            turn.state != "completed" and not turn.detail and turn.state == "failed"
        ):
            yield f"{name}: turn {turn.number} is {turn.state} {turn.detail}"
        answer = session.steps.filter(turn=turn.number, type="RunModel").last()
        if turn.state == "completed" and (answer is None or not answer.text):
            yield f"{name}: turn {turn.number} is completed without an answer"


def agreement(session: Session, story: books.Story) -> Iterator[str]:
    """The rows say what the engine's history says."""
    if story.unreplayable:
        yield f"the history of {session.pk} does not replay: {story.unreplayable}"
    # A Flow that was told to cancel ends well in the engine's eyes: it says so by its result.
    if story.status != {"canceled": "completed"}.get(session.status, session.status):
        yield f"{session.pk} is {session.status}, and {story.status} in the engine"
    last = max(story.facts, default=0)
    if sorted(story.facts) != list(range(1, last + 1)) or session.last_fact != last:
        yield f"{session.pk} has recorded {session.last_fact} of {last} facts"
    for request_id in books.duplicates(story.accepted):
        yield f"{session.pk} accepted {request_id} twice"
    closed = [body["interrupt_id"] for body in story.told("interrupt_closed")]
    for interrupt_id in books.duplicates(closed):
        yield f"{interrupt_id} was decided twice"
    for body in story.told("call_closed"):
        story.outcomes.setdefault(body["call_id"], []).append(body["outcome"])
    for call in session.calls.all():
        said = set(story.outcomes.get(call.call_id, []))
        # Calls of an answer that the Flow gave up before it heard it are canceled by the rows alone.
        unheard = call.outcome == "canceled" and not said
        if session.open and said != {call.outcome} and not unheard:
            yield f"{call} is {call.outcome}, and {said or 'nothing'} in the engine"


def audit_log() -> Iterator[str]:
    finding = audit.verify()
    if finding is not None:
        yield f"the audit log's entry {finding.seq} {finding.problem}"
    entries = list(
        AuditEntry.objects.filter(action__in=["decision.approve", "decision.reject"]).values_list(
            "detail__request_id", flat=True
        )
    )
    delivered = Decision.objects.filter(state="delivered").values_list("request_id", flat=True)
    if sorted(entries) != sorted(delivered):
        yield f"the audit log has {len(entries)} decisions of {len(delivered)}"
