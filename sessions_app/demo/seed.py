"""Sessions for a first visitor: one finished, one that waits, one in the middle of its look-ups."""

import time
from collections.abc import Callable
from importlib import resources
from pathlib import Path

from django.contrib.auth.models import User

from approvals_app.decisions import decide
from approvals_app.models import Interrupt
from sessions_app import actions
from sessions_app.agents_yaml import load_agents
from sessions_app.models import Agent, Session

PATIENCE = 60.0


class SeedFailed(Exception):
    """A seeded session did not get as far as it should; the message says which and how far."""


def agents(var: Path) -> None:
    """Make the demo's agents and connections, unless they are there: what was edited since stays."""
    if Agent.objects.filter(name="refund-desk").exists():
        return
    text = resources.files(__package__).joinpath("agents.yaml").read_text()
    load_agents(text.replace("$SHOP_DB", str(var / "shop.sqlite3")))


def sessions(user: User, say: Callable[[str], None]) -> None:
    """Make those of the demo's sessions that are not there yet."""
    if not _there(user, "refund-desk", "demo-finished"):
        say("Seeding a finished session …")
        _finished(user)
    if not _there(user, "world-clock", "demo-clock"):
        say("Seeding a session on an MCP server from the package index …")
        clock = _start(user, "world-clock", "demo-clock", "What time is it in Berlin and Tokyo?")
        _wait(clock, lambda row: row.phase == "idle" and row.turn == 1)
    if not _there(user, "archive-desk", "demo-middle"):
        say("Seeding a session in the middle of its look-ups …")
        middle = _start(user, "archive-desk", "demo-middle", "Find A-1042, A-0977 and A-0831.")
        _wait(middle, lambda row: row.phase == "acting")
    if not _there(user, "refund-desk", "demo-waiting"):
        say("Seeding a session that waits for you …")
        text = "Orders A-1042 and A-0977 came late. Please sort it out and write to the customer."
        waiting = _start(user, "refund-desk", "demo-waiting", text, "Refund for two late orders")
        _wait(waiting, lambda row: row.waiting == 1)


def _finished(user: User) -> None:
    text = "A-0831 arrived far too late. Can I have my money back?"
    session = _start(user, "refund-desk", "demo-finished", text, "Refund for A-0831")
    _wait(session, lambda row: row.waiting == 1 or (row.phase == "idle" and row.turn == 1))
    for interrupt in Interrupt.objects.pending().filter(session=session):
        decide(
            user,
            interrupt.pk,
            verdict="approve",
            revision=interrupt.revision,
            args_hash=interrupt.args_hash,
            reason="Checked with the carrier.",
            request_id=f"demo-{interrupt.pk}",
        )
    _wait(session, lambda row: row.phase == "idle" and row.turn == 1)
    actions.stop(user, session.pk, "complete", "All done.", "demo-finished-stop")


def _start(user: User, agent: str, request_id: str, message: str, title: str = "") -> Session:
    return actions.start_session(
        user, agent=agent, message=message, title=title, request_id=request_id
    )


def _there(user: User, agent: str, request_id: str) -> bool:
    found = Agent.objects.filter(name=agent).first()
    # An agent that was deleted since is not missed.
    return (
        found is None
        or Session.objects.filter(pk=actions.session_id_for(found, user, request_id)).exists()
    )


def _wait(session: Session, reached: Callable[[Session], bool]) -> None:
    give_up = time.monotonic() + PATIENCE
    while time.monotonic() < give_up:
        session.refresh_from_db()
        if reached(session):
            return
        time.sleep(0.1)
    raise SeedFailed(
        f"The demo session {session.pk} is still {session.phase} after {PATIENCE:.0f} s; "
        "is a worker running?"
    )
