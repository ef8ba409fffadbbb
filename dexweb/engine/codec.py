"""What the engine stores, encrypted with the credentials' key ring where that is switched on.

Reading never depends on the switch: what was stored plainly is taken as it is, what was encrypted
is decrypted. So it can be turned on or off, or on one process after the other, while sessions run.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Sequence
from dataclasses import replace

from cryptography.fernet import InvalidToken
from django.conf import settings
from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import Failure
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.converter import (
    DataConverter,
    DefaultFailureConverter,
    DefaultFailureConverterWithEncodedAttributes,
    PayloadCodec,
    PayloadConverter,
)
from temporalio.exceptions import ApplicationError

from dexweb.engine.errors import EngineStateUnreadable
from dexweb.keys import ring

ENCODING = b"binary/encrypted"
# Above this the work would hold up everything else that the event loop does.
OFF_THE_LOOP_BYTES = 64 * 1024


def data_converter() -> DataConverter:
    """How the Flow's data types go to the engine and back. Raises ImproperlyConfigured on bad keys."""
    converter = replace(
        pydantic_data_converter, payload_codec=StateCodec(), failure_converter_class=Failures
    )
    if not settings.DEXWEB_ENCRYPT_ENGINE_STATE:
        return converter
    ring()
    # What went wrong is told in the messages of failures, which the engine keeps too.
    return replace(converter, failure_converter_class=EncodedFailures)


class Failures(DefaultFailureConverter):
    """A missing key is told in its own words alone: its traceback would fill the worker's log."""

    def to_failure(
        self, exception: BaseException, payload_converter: PayloadConverter, failure: Failure
    ) -> None:
        if isinstance(exception, EngineStateUnreadable):
            exception = ApplicationError(exception.why, type=type(exception).__name__)
        super().to_failure(exception, payload_converter, failure)


class EncodedFailures(Failures, DefaultFailureConverterWithEncodedAttributes):
    pass


class StateCodec(PayloadCodec):
    """Whole payloads through the key ring; their metadata says which ones."""

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        if not settings.DEXWEB_ENCRYPT_ENGINE_STATE:
            return list(payloads)
        return await _each(_encrypted, payloads)

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        if not any(map(_is_encrypted, payloads)):
            return list(payloads)
        return await _each(_decrypted, payloads)


async def _each(change: Callable[[Payload], Payload], payloads: Sequence[Payload]) -> list[Payload]:
    def work() -> list[Payload]:
        return [change(payload) for payload in payloads]

    if sum(len(payload.data) for payload in payloads) > OFF_THE_LOOP_BYTES:
        return await asyncio.to_thread(work)
    return work()


def _is_encrypted(payload: Payload) -> bool:
    return payload.metadata.get("encoding") == ENCODING


# A Fernet token is base64, which would take a third more of the engine's limits than its bytes.


def _encrypted(payload: Payload) -> Payload:
    token = ring().encrypt(payload.SerializeToString())
    return Payload(metadata={"encoding": ENCODING}, data=base64.urlsafe_b64decode(token))


def _decrypted(payload: Payload) -> Payload:
    if not _is_encrypted(payload):
        return payload
    try:
        return Payload.FromString(ring().decrypt(base64.urlsafe_b64encode(payload.data)))
    except InvalidToken as error:
        raise EngineStateUnreadable() from error
