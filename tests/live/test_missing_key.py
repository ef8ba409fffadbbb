"""Workers without the key of what the engine stores: the cause is told wherever a person meets it."""

from collections.abc import Iterator
from functools import partial

import pytest
from asgiref.sync import async_to_sync
from cryptography.fernet import Fernet

from approvals_app import outbox
from approvals_app.models import Interrupt
from dexweb.engine.client import SessionEngine
from dexweb.engine.errors import EngineStateUnreadable
from sessions_app import actions
from sessions_app.models import Agent, Connection, Credential, Session
from sessions_app.reconcile import reconcile
from tests.live.conftest import Live, insist, until

KEY, OTHER = Fernet.generate_key().decode(), Fernet.generate_key().decode()
REFUND = {"order_id": "A-1042", "amount": 20, "currency": "EUR", "reason": "late"}
SCRIPT = [
    {"calls": [{"tool": "shop__issue_refund", "args": REFUND}]},
    {"text": "Done."},
    {"text": "And that too."},
]
ADVICE = "has to add that key on every worker and web server"


@pytest.fixture
def encrypted(settings, monkeypatch) -> None:
    settings.DEXWEB_ENCRYPT_ENGINE_STATE = True
    settings.DEXWEB_CREDENTIAL_KEYS = [KEY]
    monkeypatch.setenv("DEXWEB_ENCRYPT_ENGINE_STATE", "1")
    monkeypatch.setenv("DEXWEB_CREDENTIAL_KEYS", KEY)


@pytest.fixture
def asked(encrypted: None, live: Live) -> Iterator[Interrupt]:
    """An approval of a session whose worker had the key, and is gone."""
    worker = live.worker("keyless")
    live.agent(SCRIPT, pool="keyless")
    yield live.ask(live.start(live.person("boss", "refunds.approve")))
    worker.stop()


def is_stuck(session: Session) -> bool:
    reconcile(session.pk)
    session.refresh_from_db()
    return bool(session.stuck)


def test_the_missing_key_is_named_everywhere_and_all_goes_on_once_it_is_there(
    asked: Interrupt, live: Live, monkeypatch, client, settings
) -> None:
    settings.DEXWEB_ENGINE_TIMEOUT = 3.0
    session, boss = asked.session, asked.session.started_by
    client.force_login(boss)
    live.workers[0].stop()
    monkeypatch.setenv("DEXWEB_ENCRYPT_ENGINE_STATE", "0")
    monkeypatch.setenv("DEXWEB_CREDENTIAL_KEYS", OTHER)
    keyless = live.worker("keyless")

    with pytest.raises(EngineStateUnreadable, match=ADVICE):
        insist(partial(actions.send_message, boss, session.pk, "And that?"))
    with pytest.raises(EngineStateUnreadable, match=ADVICE) as refusal:
        live.decide(boss, asked)
    assert refusal.value.delivery == "delivery_pending"
    assert "delivered after that" in str(refusal.value)
    panel = client.get(f"/approvals/{asked.pk}/").content.decode()
    assert "lacks a key" in panel
    assert "as soon as the engine is back" not in panel
    until(lambda: is_stuck(session), "the worker to have tried")
    page = client.get(f"/sessions/{session.pk}/").content.decode()
    assert ADVICE in page
    assert "not certain" not in page
    assert "old version" not in page
    log = keyless.log.read_text()
    assert log.count("A session stands still") == 1
    assert "Traceback" not in log
    assert ".py" not in log
    keyless.kill()
    monkeypatch.setenv("DEXWEB_CREDENTIAL_KEYS", f"{KEY},{OTHER}")
    live.worker("keyless")
    outbox._failures.clear()
    until(lambda: outbox.sweep() == 0, "the decision to be delivered")
    live.idle(session)
    assert live.call(session, "issue_refund").outcome == "completed"


def test_a_web_server_without_the_key_is_not_ready(asked: Interrupt, client, settings) -> None:
    assert client.get("/readyz").json()["checks"]["engine"] == "ok"
    settings.DEXWEB_CREDENTIAL_KEYS = [OTHER]
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert "engine_state_unreadable" in answer.json()["checks"]["engine"]
    settings.DEXWEB_CREDENTIAL_KEYS = [KEY]
    async_to_sync(SessionEngine().terminate)(asked.session_id, "the test is over")


@pytest.mark.usefixtures("standing_worker")
@pytest.mark.parametrize("of_model", [False, True], ids=["connection", "model"])
def test_a_credential_that_no_key_opens_is_named_and_not_tried_again(
    of_model: bool, live: Live, settings
) -> None:
    live.agent(SCRIPT, pool="standing")
    settings.DEXWEB_CREDENTIAL_KEYS = [OTHER]
    owner = Agent if of_model else Connection
    owner.objects.update(credential=Credential.objects.create(name="shop-key", value="k" * 20))
    session = live.idle(live.start(live.person("boss")))
    step = session.steps.get(type="RunModel")
    assert (step.status, step.attempt) == ("failed", 1)
    assert "The credential “shop-key” cannot be decrypted" in step.detail
    assert "enter the credential anew" in step.detail
    assert ("The connection shop cannot be used" in step.detail) is not of_model
    assert ".." not in step.detail
