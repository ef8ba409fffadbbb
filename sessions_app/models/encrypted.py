"""A text field that is encrypted at rest."""

from functools import lru_cache
from typing import Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.core.exceptions import FieldError, ImproperlyConfigured
from django.db import models

from dexweb.keys import credential_keys


class WrongCredentialKey(Exception):
    """No key of the ring opens this value: the ring is not the one it was stored with."""

    def __init__(self) -> None:
        super().__init__(
            "A credential cannot be decrypted with the keys in DEXWEB_CREDENTIAL_KEYS "
            "(or the key file under DEXWEB_VAR). Add the key it was stored with, or enter it anew."
        )


@lru_cache(maxsize=4)
def _ring(keys: tuple[str, ...]) -> MultiFernet:
    try:
        return MultiFernet([Fernet(key) for key in keys])
    except ValueError as error:
        raise ImproperlyConfigured(
            "DEXWEB_CREDENTIAL_KEYS must hold Fernet keys: 32 bytes, URL-safe base64, comma-separated."
        ) from error


def ring() -> MultiFernet:
    """The key ring in force: encrypts with its first key, reads with any."""
    return _ring(tuple(credential_keys(settings.DEXWEB_VAR, settings.DEXWEB_CREDENTIAL_KEYS)))


class EncryptedTextField(models.TextField):
    """Text, Fernet-encrypted in the database. Only ``isnull`` can be looked up.

    Reading a value that no key opens raises `WrongCredentialKey`; it never yields the cipher text.
    """

    def get_prep_value(self, value: Any) -> Any:
        if value is None or value == "":
            return value
        return ring().encrypt(str(value).encode()).decode()

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        if value is None or value == "":
            return value
        try:
            return ring().decrypt(value.encode()).decode()
        except InvalidToken as error:
            raise WrongCredentialKey from error

    def get_lookup(self, lookup_name: str) -> Any:
        if lookup_name != "isnull":
            raise FieldError(f"An encrypted field cannot be searched by '{lookup_name}'.")
        return super().get_lookup(lookup_name)
