"""A session as its RPCs change it, in plain words: what a real one is held against.

`Model` takes the session's events one by one. What an RPC does comes from the RPC itself, never from
its event; only what no RPC caused (a turn that begins, a hold that runs out) is taken from there.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sessions_app.flow import state

CLOSES_AS = {"complete": "completed", "cancel": "canceled", "fail": "failed"}
WAITING = ("queued", "steered")
Refusals = dict[str, dict[str, Any]]


@dataclass
class Sent:
    """A person's message."""

    text: str
    state: str = "queued"
    edited_by: str = ""


@dataclass
class Ask:
    """An approval or a question."""

    kind: str
    call_id: str
    args_hash: str
    deadline: str = ""
    revision: int = 1
    state: str = "pending"
    by: str = ""
    holder: str = ""
    until: datetime | None = None
    votes: dict[str, str] = field(default_factory=dict)
    voided: bool = False

    def close(self, state: str, by: str = "") -> None:
        self.state, self.by, self.holder, self.until = state, by, "", None


@dataclass
class Model:
    """Two approve or one rejects; every approval asks for the arguments of ``args_hash``."""

    session_id: str
    args_hash: str
    messages: dict[str, Sent] = field(default_factory=dict)
    asks: dict[str, Ask] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    revision: int = 0
    turns: dict[int, str] = field(default_factory=dict)
    timers: set[str] = field(default_factory=set)
    closed: str = ""

    # What would be refused now ------------------------------------------------------------------

    def refusals(self, rpc: Any, at: datetime | None = None) -> Refusals:
        """Every refusal of ``rpc`` that would be true now, by code, with what it has to say."""
        match rpc:
            case state.SendMessage():
                asked = [key for key, ask in self.asks.items() if self._open_question(ask)]
                found: Refusals = {"question_open": {}} if asked else {}
                return found | _blank(rpc.text)
            case state.EditQueued():
                return self._not_found(rpc.message_id) | _blank(rpc.text)
            case state.DeleteQueued() | state.Steer():
                return self._not_found(rpc.message_id)
            case state.UpdateSettings():
                stale = rpc.revision != self.revision
                return {"stale_settings": {"revision": self.revision}} if stale else {}
            case state.CancelTurn():
                return {} if self.running else {"no_turn": {}}
            case state.SkipWait():
                return {} if rpc.step_id in self.timers else {"not_waiting": {}}
            case state.RaiseSpend():
                return {"not_blocked": {}}
            case state.Stop():
                return {}
        return self._refused_ask(rpc, at)

    def _refused_ask(self, rpc: Any, at: datetime | None) -> Refusals:
        ask = self.asks.get(rpc.interrupt_id)
        if ask is None:
            return {"interrupt_not_found": {}}
        if ask.state != "pending":
            return {"interrupt_already_decided": {"state": ask.state, "by": ask.by}}
        found: Refusals = {}
        over = at is not None and ask.until is not None and ask.until <= at
        forced = isinstance(rpc, state.ExtendDeadline) or getattr(rpc, "take_over", False)
        if ask.holder not in ("", rpc.actor.name) and not over and not forced:
            found["rpc_lock_conflict"] = {"lock_kind": "hold", "holder": ask.holder}
        kinds = {
            state.ResolveInterrupt: "approval",
            state.ExtendDeadline: "approval",
            state.AnswerQuestion: "question",
        }
        if ask.kind != kinds.get(type(rpc), ask.kind):
            return {"wrong_kind": {"kind": ask.kind}}
        shown = getattr(rpc, "revision", ask.revision), getattr(rpc, "args_hash", ask.args_hash)
        if shown != (ask.revision, ask.args_hash):
            found["stale_interrupt"] = {"revision": ask.revision}
        votes = isinstance(rpc, state.ResolveInterrupt) and not rpc.edited_args
        if votes and rpc.actor.name in ask.votes:
            found["already_voted"] = {"verdict": ask.votes[rpc.actor.name]}
        if isinstance(rpc, state.ExtendDeadline) and rpc.until < ask.deadline:
            found["deadline_not_later"] = {"deadline": ask.deadline}
        if isinstance(rpc, state.AnswerQuestion) and not rpc.answers[0][0].strip():
            found["invalid_arguments"] = {}
        return found

    def _not_found(self, message_id: str) -> Refusals:
        sent = self.messages.get(message_id)
        waits = sent is not None and sent.state in WAITING
        return {} if waits else {"message_not_found": {}}

    def _open_question(self, ask: Ask) -> bool:
        return ask.kind == "question" and ask.state == "pending"

    @property
    def running(self) -> list[int]:
        return [number for number, how in self.turns.items() if how == "running"]

    def changes_nothing(self, rpc: Any) -> bool:
        """Whether ``rpc`` asks for what is so already, which is accepted and leaves no event."""
        if isinstance(rpc, state.Steer):
            sent = self.messages.get(rpc.message_id)
            return sent is not None and sent.state == "steered"
        if isinstance(rpc, state.ReleaseInterrupt):
            ask = self.asks.get(rpc.interrupt_id)
            return ask is not None and ask.state == "pending" and not ask.holder
        return False

    # What RPCs do -------------------------------------------------------------------------------

    def do(self, rpc: Any, at: datetime) -> tuple[str, str]:
        """Do ``rpc``; returns what it is to answer: (id, state)."""
        match rpc:
            case state.SendMessage():
                self.messages[rpc.request_id] = Sent(rpc.text)
                return rpc.request_id, "queued"
            case state.EditQueued():
                sent = self.messages[rpc.message_id]
                sent.text, sent.edited_by = rpc.text, rpc.actor.name
                return rpc.message_id, "edited"
            case state.DeleteQueued():
                self.messages[rpc.message_id].state = "deleted"
                return rpc.message_id, "deleted"
            case state.Steer():
                if self.messages[rpc.message_id].state == "queued":
                    self.messages[rpc.message_id].state = "steered"
                    self.timers.clear()
                    for ask in self.asks.values():
                        if ask.state == "pending":
                            ask.close("superseded")
                return rpc.message_id, "steered"
            case state.UpdateSettings():
                self.settings |= json.loads(rpc.patch)
                self.revision += 1
                return self.session_id, str(self.revision)
            case state.CancelTurn():
                (number,) = self.running
                self.turns[number] = "canceled"
                self.timers.clear()
                return str(number), "canceled"
            case state.SkipWait():
                self.timers.remove(rpc.step_id)
                return rpc.step_id, "skipped"
            case state.Stop():
                self.closed = CLOSES_AS[rpc.kind]
                return self.session_id, self.closed
        return rpc.interrupt_id, self._do_ask(self.asks[rpc.interrupt_id], rpc, at)

    def _do_ask(self, ask: Ask, rpc: Any, at: datetime) -> str:
        who = rpc.actor.name
        match rpc:
            case state.HoldInterrupt():
                ask.holder, ask.until = who, at + timedelta(seconds=rpc.seconds)
                return ask.until.isoformat()
            case state.ReleaseInterrupt():
                ask.holder, ask.until = "", None
                return "released"
            case state.ExtendDeadline():
                ask.deadline = rpc.until
                return rpc.until
            case state.AnswerQuestion():
                ask.close("answered", who)
                return ask.state
        if rpc.edited_args and rpc.edited_hash != ask.args_hash:
            ask.revision, ask.args_hash, ask.votes = ask.revision + 1, rpc.edited_hash, {}
        ask.votes[who] = rpc.verdict
        if ask.holder == who:
            ask.holder, ask.until = "", None
        if rpc.verdict == "reject":
            ask.close("rejected", who)
        elif list(ask.votes.values()).count("approve") == 2:
            ask.close("approved", who)
        return ask.state

    # What happens by itself ---------------------------------------------------------------------

    def happen(self, type: str, payload: dict[str, Any], step_id: str, at: datetime) -> None:
        """Take in an event that no RPC accounts for, if it could come by itself."""
        ask = self.asks.get(payload.get("interrupt_id", ""))
        match type:
            case "message.queued":
                assert not self.messages, "a message that nobody sent"
                self.messages[payload["message_id"]] = Sent(payload["text"])
            case "message.consumed":
                assert self.messages[payload["message_id"]].state in WAITING
                self.messages[payload["message_id"]].state = "consumed"
            case "turn.started":
                assert not self.running
                self.turns[payload["turn"]] = "running"
            case "turn.completed" | "turn.canceled":
                self.turns[payload["turn"]] = payload["state"]
                self.timers.clear()
            case "approval.requested" | "question.asked":
                call_id = payload["call_id"]
                hashes = [one.args_hash for one in self.asks.values() if one.call_id == call_id]
                args_hash = hashes[-1] if hashes else self.args_hash
                fresh = Ask(type.partition(".")[0], call_id, args_hash, payload.get("deadline", ""))
                self.asks[payload["interrupt_id"]] = fresh
            case "tool.invalidated":
                # No decision is on record here, only the engine's word; so it is asked for anew.
                (last,) = (one for one in self.asks.values() if _is_to_run(one, payload["call_id"]))
                last.voided = True
            case "approval.decided":
                assert ask is not None
                assert (ask.state, ask.by) == (payload["verdict"], payload["by"])
            case "approval.canceled":
                assert ask is not None and ask.state in ("pending", payload["verdict"])
                ask.close(payload["verdict"])
            case "approval.released":
                assert ask is not None and ask.until is not None
                # A person's own decision lets go of their hold; nothing else but its end does.
                assert payload["by"] == ask.holder or ask.until <= at
                ask.holder, ask.until = "", None
            case "timer.set":
                self.timers.add(step_id)
            case "timer.fired":
                # Steering ends them all; otherwise nobody but whoever asked for it skips one.
                assert (step_id in self.timers) != bool(payload.get("skipped_by"))
                self.timers.discard(step_id)
            case "session.closed":
                self.closed = payload["status"]


def _is_to_run(ask: Ask, call_id: str) -> bool:
    return ask.call_id == call_id and ask.state == "approved" and not ask.voided


def _blank(text: str) -> Refusals:
    return {} if text.strip() else {"blank_message": {}}
