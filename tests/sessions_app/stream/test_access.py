"""Who may open a socket, and when an open one is closed, with which code."""

import os
from collections.abc import Callable
from typing import Any

import pytest
from channels.testing import WebsocketCommunicator
from django.contrib.auth.models import Group, Permission, User
from django.db import connection
from django.test import Client
from rest_framework.authtoken.models import Token

from dexweb.asgi import application
from sessions_app.models import Session
from tests.sessions_app.stream.conftest import PATIENCE, cookie, in_database, opened, put

ROUTES = ["/ws/sessions/s-1/events", "/ws/sessions", "/ws/approvals"]
EVENTS = ROUTES[0]


@pytest.fixture
def often(settings: Any) -> None:
    settings.DEXWEB_SOCKET_RECHECK = 0.1


@pytest.mark.parametrize("path", ROUTES)
@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("https://evil.example", "localhost:8000"),
        ("http://localhost:9999", "localhost:8000"),
        ("http://evil.example:8000", "evil.example:8000"),
        ("null", "localhost:8000"),
        ("http://[", "localhost:8000"),
    ],
)
async def test_another_sites_page_is_refused_before_anything_is_accepted(
    session: Session, browser: Client, path: str, origin: str, host: str
) -> None:
    headers = [cookie(browser), (b"origin", origin.encode()), (b"host", host.encode())]
    socket = WebsocketCommunicator(application, path, headers=headers)
    accepted, _ = await socket.connect(timeout=PATIENCE)
    assert not accepted


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("http://localhost:8000", "localhost:8000"),
        ("http://127.0.0.1:8000", "127.0.0.1:8000"),
        ("http://[::1]:8000", "[::1]:8000"),
        ("https://dex.example", "localhost:8000"),
        ("https://a.desks.example", "localhost:8000"),
    ],
)
async def test_our_own_pages_and_trusted_origins_are_accepted(
    session: Session, browser: Client, settings: Any, origin: str, host: str
) -> None:
    settings.CSRF_TRUSTED_ORIGINS = ["https://dex.example", "https://*.desks.example"]
    headers = [cookie(browser), (b"origin", origin.encode()), (b"host", host.encode())]
    async with opened(EVENTS, *headers) as viewer:
        assert (await viewer.next())["type"] == "hello"


@pytest.mark.parametrize("path", ROUTES)
async def test_a_socket_opens_with_a_last_slash_too(
    session: Session, browser: Client, path: str
) -> None:
    async with opened(f"{path}/", cookie(browser)) as viewer:
        assert (await viewer.next())["type"] == "hello"


@pytest.mark.parametrize("path", ROUTES)
async def test_who_is_not_signed_in_is_told_by_the_code(session: Session, path: str) -> None:
    async with opened(path) as viewer:
        assert await viewer.close_code() == 4401


@pytest.mark.parametrize("path", ROUTES)
async def test_who_may_not_look_is_told_by_the_code(session: Session, path: str) -> None:
    def stranger() -> Client:
        client = Client()
        client.force_login(User.objects.create_user("sam"))
        return client

    async with opened(path, cookie(await in_database(stranger)())) as viewer:
        assert await viewer.close_code() == 4403


async def test_an_unknown_session_is_told_by_the_code(session: Session, browser: Client) -> None:
    async with opened("/ws/sessions/nowhere/events", cookie(browser)) as viewer:
        assert await viewer.close_code() == 4404


async def test_an_unknown_address_is_told_by_the_code(transactional_db: None) -> None:
    async with opened("/ws/elsewhere") as viewer:
        assert await viewer.close_code() == 4404


@pytest.mark.parametrize("path", ROUTES)
@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda user, client: user.user_permissions.clear(), 4403),
        (lambda user, client: client.logout(), 4401),
        (lambda user, client: User.objects.update(is_active=False), 4401),
        (lambda user, client: user.delete(), 4401),
        (lambda user, client: user.set_password("other") or user.save(), 4401),
    ],
    ids=["permission lost", "signed out", "deactivated", "deleted", "new password"],
)
async def test_an_open_socket_is_closed_when_its_right_is_lost(
    session: Session,
    watcher: User,
    browser: Client,
    often: None,
    path: str,
    change: Callable[[User, Client], Any],
    code: int,
) -> None:
    async with opened(path, cookie(browser)) as viewer:
        assert (await viewer.next())["type"] == "hello"
        await in_database(change)(watcher, browser)
        assert await viewer.close_code() == code


async def test_a_script_signs_in_with_its_token_until_that_is_withdrawn(
    session: Session, watcher: User, often: None
) -> None:
    token = await in_database(Token.objects.create)(user=watcher)
    async with opened(EVENTS, (b"authorization", f"Token {token.key}".encode())) as viewer:
        assert (await viewer.next())["type"] == "hello"
        await in_database(token.delete)()
        assert await viewer.close_code() == 4401


async def test_a_wrong_token_is_not_made_good_by_a_cookie(
    session: Session, browser: Client
) -> None:
    async with opened(EVENTS, (b"authorization", b"Token nonsense"), cookie(browser)) as viewer:
        assert await viewer.close_code() == 4401


async def test_a_client_that_answers_no_ping_is_closed_as_idle(
    session: Session, watch: Any, settings: Any
) -> None:
    settings.DEXWEB_SOCKET_PING = 0.1
    settings.DEXWEB_SOCKET_IDLE = 0.6
    async with watch() as viewer:
        for _ in range(10):
            assert (await viewer.next())["type"] == "ping"
            await viewer.say(type="pong")
        assert await viewer.close_code() == 4408


@pytest.mark.parametrize(
    "text",
    ["hello", "[]", "{}", '{"type": 1}', '{"type": "ack"}', '{"type": "ack", "seq": "1"}',
     '{"type": "ack", "seq": true}', '{"type": "ack", "seq": 2}', '"' + "x" * 5000, "[" * 4000],
)  # fmt: skip
async def test_a_message_that_breaks_the_protocol_closes_with_its_code(
    session: Session, watch: Any, text: str
) -> None:
    await put("s-1", "one")
    async with watch() as viewer:
        await viewer.until(1, ack=False)
        await viewer.socket.send_to(text_data=text)
        assert await viewer.close_code() == 4400


@pytest.mark.parametrize("after", ["-1", "x", "1.5", "9" * 30, "²"])
async def test_a_number_that_is_none_closes_with_its_code(
    session: Session, browser: Client, after: str
) -> None:
    async with opened(f"{EVENTS}?after={after}", cookie(browser)) as viewer:
        assert await viewer.close_code() == 4400


async def test_a_message_of_a_later_protocol_is_ignored(session: Session, watch: Any) -> None:
    async with watch() as viewer:
        await viewer.say(type="dance", with_whom="nobody")
        await put("s-1", "one")
        assert await viewer.until(1) == [1]


async def test_more_sockets_open_no_more_database_connections(
    session: Session, watcher: User, browser: Client, watch: Any, often: None
) -> None:
    async def open_several(count: int) -> int:
        viewers = [watch() for _ in range(count)]
        opened_ones = [await one.__aenter__() for one in viewers]
        numbers = []
        for _ in range(5):
            await put("s-1", "more")
            newest = await in_database(lambda: Session.objects.get(pk="s-1").last_seq)()
            for viewer in opened_ones:
                await viewer.until(newest)
            numbers.append(await in_database(connections_open)())
        for one in viewers:
            await one.__aexit__(None, None, None)
        return max(numbers)

    assert await open_several(30) <= await open_several(2)


def connections_open() -> int:
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            )
            return int(cursor.fetchone()[0])
    name = str(connection.settings_dict["NAME"])
    files = [os.path.realpath(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")]
    return files.count(os.path.realpath(name))


async def test_a_permission_that_comes_through_a_group_counts(
    session: Session, transactional_db: None
) -> None:
    def member() -> Client:
        group = Group.objects.create(name="Viewers")
        group.permissions.add(
            Permission.objects.get(codename="view_session", content_type__app_label="sessions_app")
        )
        client = Client()
        client.force_login(User.objects.create_user("vera"))
        group.user_set.add(User.objects.get(username="vera"))
        return client

    async with opened(EVENTS, cookie(await in_database(member)())) as viewer:
        assert (await viewer.next())["type"] == "hello"
