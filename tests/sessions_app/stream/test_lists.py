"""The lists' sockets: what changed, soon and without counting on the order of commits."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import Group, User
from django.test import Client
from django.utils import timezone

from approvals_app.delegations import revoke
from approvals_app.models import Delegation, Interrupt, PermissionKey
from sessions_app.models import Message, Session
from sessions_app.projection import locked
from sessions_app.stream.append import append
from sessions_app.stream.feed import ListReader
from tests.sessions_app.stream.conftest import (
    Viewer,
    cookie,
    in_database,
    make_session,
    opened,
    put,
)


@asynccontextmanager
async def listening(path: str, client: Client) -> AsyncIterator[Viewer]:
    async with opened(path, cookie(client)) as viewer:
        viewer.hello = await viewer.next()
        yield viewer


def ask(pk: str, permission: str = "refunds.approve") -> None:
    with locked("s-1") as session:
        now = timezone.now()
        Interrupt.objects.create(
            id=pk, session=session, step_id=pk, call_id=pk, turn=1, tool="t", effect="write",
            risk="high", permission=permission, args="{}", args_hash="h", at_deadline="reject",
            deadline=now + timedelta(hours=1), asked_at=now,
        )  # fmt: skip
        append(session, "approval.requested", {"interrupt_id": pk}, now)


def close(pk: str) -> None:
    with locked("s-1") as session:
        Interrupt.objects.filter(pk=pk).update(state="approved")
        append(session, "approval.decided", {"interrupt_id": pk}, timezone.now())


def give_key(user: User) -> None:
    group = Group.objects.create(name="Approvers")
    group.user_set.add(user)
    PermissionKey.objects.create(key="refunds.approve").groups.add(group)


async def settled(viewer: Viewer, **wanted: Any) -> dict[str, Any]:
    """The first message that says what is ``wanted``."""
    while True:
        message = await viewer.next()
        if all(message.get(name) == value for name, value in wanted.items()):
            return message


async def test_a_session_that_changes_is_named(session: Session, browser: Client) -> None:
    async with listening("/ws/sessions", browser) as viewer:
        assert viewer.hello["type"] == "hello"
        await settled(viewer, type="sessions", ids=["s-1"])  # changed just before we came
        await in_database(make_session)("s-2")
        await settled(viewer, type="sessions", ids=["s-2"])
        await put("s-1", "more")
        await settled(viewer, type="sessions", ids=["s-1"])
        assert await viewer.quiet()


async def test_a_row_that_commits_late_with_an_earlier_time_is_named_too(
    session: Session, browser: Client
) -> None:
    async with listening("/ws/sessions", browser) as viewer:
        await settled(viewer, ids=["s-1"])
        late = await in_database(make_session)("s-late")
        late.updated_at -= timedelta(seconds=4)
        await in_database(late.save)()
        await settled(viewer, ids=["s-late"])


async def test_approvals_that_come_and_go_are_named_with_how_many_wait_for_this_person(
    session: Session, watcher: User, browser: Client
) -> None:
    await in_database(give_key)(watcher)
    async with listening("/ws/approvals", browser) as viewer:
        await settled(viewer, type="approvals", ids=[], pending=0)
        await in_database(ask)("i-1")
        await settled(viewer, ids=["i-1"], pending=1)
        await in_database(ask)("i-2", permission="payroll.approve")
        await settled(viewer, ids=["i-2"], pending=1)
        await in_database(close)("i-1")
        await settled(viewer, ids=["i-1"], pending=0)
    async with listening("/ws/approvals", browser) as viewer:
        await settled(viewer, type="approvals", ids=[], pending=0)


async def test_what_four_eyes_keep_from_this_person_is_not_counted_as_waiting_for_them(
    session: Session, watcher: User, browser: Client
) -> None:
    def ask_apart(pk: str, starter: User) -> None:
        Session.objects.update(started_by=starter)
        Message.objects.all().delete()
        Message.objects.create(
            session_id="s-1", message_id=pk, text="Hi", author=starter, turn=1,
            created_at=timezone.now(),
        )  # fmt: skip
        ask(pk)
        Interrupt.objects.filter(pk=pk).update(policy={"four_eyes": True})

    other = await in_database(User.objects.create_user)("other")
    await in_database(give_key)(watcher)
    await in_database(ask)("i-1")
    await in_database(ask_apart)("i-2", watcher)
    async with listening("/ws/approvals", browser) as viewer:
        first = await settled(viewer, type="approvals")
        assert first["pending"] == 1
        await in_database(ask_apart)("i-3", other)
        await settled(viewer, pending=3)


async def test_a_deadline_that_moves_is_a_change(
    session: Session, watcher: User, browser: Client
) -> None:
    def extend() -> None:
        Interrupt.objects.update(deadline=timezone.now() + timedelta(hours=9))

    await in_database(ask)("i-1")
    async with listening("/ws/approvals", browser) as viewer:
        await settled(viewer, type="approvals", ids=[])
        await in_database(extend)()
        await settled(viewer, ids=["i-1"])


def test_a_list_that_changes_faster_than_it_is_read_is_told_to_load_anew() -> None:
    reader = ListReader(lambda: None, [])
    reader.add(str(n) for n in range(5000))
    assert reader.take() == ([], True)
    reader.add(["a"])
    assert reader.take() == (["a"], False)


async def test_a_permission_that_is_handed_over_moves_what_is_pending_at_once(
    session: Session, watcher: User, browser: Client
) -> None:
    def hand_over() -> Delegation:
        giver = User.objects.create_user("giver")
        give_key(giver)
        now = timezone.now()
        return Delegation.objects.create(
            giver=giver, receiver=watcher, key="refunds.approve", reason="Away",
            starts_at=now, ends_at=now + timedelta(hours=1),
        )  # fmt: skip

    def take_back(row: Delegation) -> None:
        revoke(row.giver, row.pk)

    await in_database(ask)("i-1")
    async with listening("/ws/approvals", browser) as viewer:
        await settled(viewer, type="approvals", ids=[], pending=0)
        row = await in_database(hand_over)()
        await settled(viewer, ids=["i-1"], pending=1)
        await in_database(take_back)(row)
        await settled(viewer, ids=["i-1"], pending=0)
