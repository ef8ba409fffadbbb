"""What goes to the engine, with encryption on and off, and with keys that come and go."""

import pytest
from cryptography.fernet import Fernet
from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured
from temporalio.api.failure.v1 import Failure

from dexweb.engine.codec import data_converter
from dexweb.engine.errors import EngineStateUnreadable

OLD, NEW = Fernet.generate_key().decode(), Fernet.generate_key().decode()
SMALL, LARGE = "a small SECRET", "a large SECRET" * 20_000


@pytest.fixture
def on(settings):
    settings.DEXWEB_ENCRYPT_ENGINE_STATE = True
    settings.DEXWEB_CREDENTIAL_KEYS = [OLD]


@pytest.mark.parametrize("text", [SMALL, LARGE], ids=["small", "large"])
async def test_it_is_unreadable_on_the_way_hardly_larger_and_the_same_again(on, text):
    (stored,) = await data_converter().encode([text])
    assert b"SECRET" not in stored.SerializeToString()
    assert len(stored.data) < len(text) + 200
    assert await data_converter().decode([stored]) == [text]


async def test_what_was_stored_plainly_stays_readable(settings):
    stored = await data_converter().encode([SMALL])
    settings.DEXWEB_ENCRYPT_ENGINE_STATE = True
    assert await data_converter().decode(stored) == [SMALL]


async def test_what_was_encrypted_stays_readable_once_it_is_off(on, settings):
    stored = await data_converter().encode([SMALL])
    settings.DEXWEB_ENCRYPT_ENGINE_STATE = False
    assert await data_converter().decode(stored) == [SMALL]
    (plain,) = await data_converter().encode([SMALL])
    assert b"SECRET" in plain.data


async def test_an_older_key_reads_and_a_missing_one_says_what_to_do(on, settings):
    stored = await data_converter().encode([SMALL])
    settings.DEXWEB_CREDENTIAL_KEYS = [NEW, OLD]
    assert await data_converter().decode(stored) == [SMALL]
    settings.DEXWEB_CREDENTIAL_KEYS = [NEW]
    with pytest.raises(EngineStateUnreadable, match="has to add that key"):
        await data_converter().decode(stored)


async def test_messages_and_tracebacks_of_failures_are_encrypted_too(on):
    told = Failure()
    try:
        raise ValueError(SMALL)
    except ValueError as error:
        await data_converter().encode_failure(error, told)
    assert b"SECRET" not in told.SerializeToString()
    assert "a small SECRET" in str(await data_converter().decode_failure(told))


def test_keys_that_are_none_stop_the_start(on, settings):
    settings.DEXWEB_CREDENTIAL_KEYS = ["too short"]
    with pytest.raises(ImproperlyConfigured, match="DEXWEB_CREDENTIAL_KEYS"):
        data_converter()


def test_a_check_warns_where_only_this_machine_has_the_key(on, settings):
    assert "dexweb.engine.W001" not in {found.id for found in run_checks()}
    settings.DEXWEB_CREDENTIAL_KEYS = []
    assert "dexweb.engine.W001" in {found.id for found in run_checks()}
