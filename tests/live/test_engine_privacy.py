"""With encryption on, who reads the engine's data learns nothing that people, models or tools said."""

from pathlib import Path

import pytest
from cryptography.fernet import Fernet
from django.conf import settings as django_settings

from sessions_app.models import Connection, Credential
from tests.live.conftest import Live, engine_holds

OLD, NEW = Fernet.generate_key().decode(), Fernet.generate_key().decode()
SECRET = "SECRET-5f0c77e2"
REFUND = {"order_id": "A-1042", "amount": 20, "currency": "EUR", "reason": SECRET}
SCRIPT = [
    {"text": f"I'll refund {SECRET}.", "calls": [{"tool": "shop__issue_refund", "args": REFUND}]},
    {"text": "Done."},
]


class Keys:
    """The environment of this process and of the workers that it starts from now on."""

    def __init__(self, settings, monkeypatch):
        self.settings, self.monkeypatch = settings, monkeypatch

    def are(self, *keys):
        self.settings.DEXWEB_ENCRYPT_ENGINE_STATE = True
        self.settings.DEXWEB_CREDENTIAL_KEYS = list(keys)
        self.monkeypatch.setenv("DEXWEB_ENCRYPT_ENGINE_STATE", "1")
        self.monkeypatch.setenv("DEXWEB_CREDENTIAL_KEYS", ",".join(keys))


@pytest.fixture
def keys(settings, monkeypatch):
    return Keys(settings, monkeypatch)


def engine_file_holds(text: str) -> bool:
    files = Path(django_settings.DEXWEB_VAR, "engine").glob("engine.sqlite3*")
    return any(text.encode() in file.read_bytes() for file in files)


def test_a_session_runs_through_a_change_of_keys_and_the_engine_never_holds_what_was_said(
    keys: Keys, live: Live
) -> None:
    keys.are(OLD)
    worker = live.worker("private")
    boss = live.person("boss", "refunds.approve")
    live.agent(SCRIPT, pool="private")
    session = live.start(boss, message=f"Refund {SECRET}, please.")
    interrupt = live.ask(session)
    keys.are(NEW, OLD)
    worker.stop()
    live.worker("private")
    live.decide(boss, interrupt, reason=f"because of {SECRET}")
    live.idle(session)

    assert live.call(session, "issue_refund").outcome == "completed"
    assert engine_holds(session, "run_model")
    assert not engine_holds(session, SECRET)
    assert not engine_holds(session, "shop__issue_refund")
    assert not engine_file_holds(SECRET)


@pytest.mark.usefixtures("standing_worker")
def test_it_is_turned_on_for_one_process_after_the_other_while_a_session_waits(
    live: Live, settings
) -> None:
    boss = live.person("boss", "refunds.approve")
    live.agent(SCRIPT, pool="standing")
    session = live.start(boss)
    interrupt = live.ask(session)
    settings.DEXWEB_ENCRYPT_ENGINE_STATE = True
    live.decide(boss, interrupt)
    settings.DEXWEB_ENCRYPT_ENGINE_STATE = False
    live.idle(session)

    assert live.call(session, "issue_refund").outcome == "completed"
    assert interrupt.decisions.get().state == "delivered"
    assert engine_holds(session, "binary/encrypted")


@pytest.mark.usefixtures("standing_worker")
def test_with_it_off_no_credential_is_in_the_engine_all_the_same(live: Live) -> None:
    live.agent(SCRIPT[:1], pool="standing")
    key = "tool-key-0123456789-THE-END"
    Connection.objects.update(credential=Credential.objects.create(name="shop-key", value=key))
    session = live.start(live.person("ann"), message=f"Refund {SECRET}, please.")
    live.ask(session)

    assert engine_holds(session, SECRET)
    assert engine_file_holds(SECRET)
    assert not engine_holds(session, key)
    assert not engine_file_holds(key)
