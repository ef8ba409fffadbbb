"""The conversation of a session, read newest turns first and never more than fits."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from django.db.models import Q
from django.db.models.functions import Left

from sessions_app.conversation import (
    ENDED,
    TEXT_SHOWN,
    WAITING,
    Rows,
    Said,
    TurnItems,
    build,
    queue,
)
from sessions_app.models import AgentEvent, Session, Step

TURNS_SHOWN = 5
ROWS_READ = 1_500
QUEUE_SHOWN = 50
START_OF_TEXT = 400
DELTAS_READ = 3_000


@dataclass(frozen=True)
class Conversation:
    """`earlier`: the first shown turn, if there are turns before it; `whole`: nothing is left out."""

    turns: list[TurnItems]
    queue: list[Said]
    earlier: int | None
    whole: bool = False


def latest(session: Session, *, before: int | None = None) -> Conversation:
    """The newest turns, or the newest of those before a turn."""
    turns = session.turns.order_by("-number")
    if before is not None:
        turns = turns.filter(number__lt=before)
    found = list(turns.defer("settings")[: TURNS_SHOWN + 1])
    shown = found[:TURNS_SHOWN][::-1]
    earlier = shown[0].number if len(found) > TURNS_SHOWN else None
    waiting = _queued(session) if before is None else []
    return Conversation(build(_rows(session, shown)), queue(waiting), earlier)


def since(session: Session, number: int, *, whole: bool = False) -> Conversation:
    """The turn with this number and those after it, for a page that has all before."""
    shown = list(
        session.turns.filter(number__gte=number).order_by("-number").defer("settings")[:TURNS_SHOWN]
    )[::-1]
    turns = build(_rows(session, shown), whole=whole)
    return Conversation(turns, queue(_queued(session)), None, whole)


def whole(session: Session, number: int) -> Conversation:
    """One turn with every model call in it."""
    shown = list(session.turns.filter(number=number).defer("settings"))
    return Conversation(build(_rows(session, shown), whole=True), [], None, whole=True)


def _rows(session: Session, turns: list) -> Rows:
    numbers = [turn.number for turn in turns]
    steps = list(
        session.steps.filter(turn__in=numbers)
        .filter(Q(type="RunModel") | ~Q(call_id=""))
        .defer("response", "reasoning", "text", "causes")
        .annotate(text_start=Left("text", TEXT_SHOWN + 1))
        .order_by("-position")[:ROWS_READ]
    )[::-1]
    for step in steps:
        step.text = step.text_start
    calls = (
        session.calls.filter(turn__in=numbers)
        .defer("args", "result", "words", "policy")
        .annotate(args_start=Left("args", START_OF_TEXT), words_start=Left("words", START_OF_TEXT))
        .order_by("-turn", "-id")[:ROWS_READ]
    )
    messages = list(session.messages.filter(turn__in=numbers, state="consumed").order_by("id"))
    summaries = list(session.summaries.filter(turn__in=numbers).order_by("-id")[:ROWS_READ])[::-1]
    in_order = sorted(calls, key=lambda call: call.position)
    return Rows(turns, messages, steps, in_order, _partial(session, steps), summaries)


def _queued(session: Session) -> list:
    return list(session.messages.filter(state__in=WAITING).order_by("id")[:QUEUE_SHOWN])


def _partial(session: Session, steps: list[Step]) -> dict[str, str]:
    """What the model calls that run now have streamed, up to the session row's own number."""
    attempts = {
        step.step_id: step.attempt
        for step in steps
        if step.type == "RunModel" and step.status not in ENDED
    }
    if not attempts:
        return {}
    deltas = (
        AgentEvent.objects.filter(
            session=session, step_id__in=attempts, type="model.delta", seq__lte=session.last_seq
        )
        .order_by("-seq")
        .only("step_id", "attempt", "payload")[:DELTAS_READ]
    )
    pieces: defaultdict[str, list[str]] = defaultdict(list)
    for delta in reversed(deltas):
        if delta.attempt in (0, attempts[delta.step_id]):
            pieces[delta.step_id].append(str(delta.payload.get("text", "")))
    return {step_id: "".join(texts) for step_id, texts in pieces.items()}
