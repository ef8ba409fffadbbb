"""A text field that is encrypted at rest."""

from typing import Any

from cryptography.fernet import InvalidToken, MultiFernet
from django.core.exceptions import FieldError
from django.db import models

from dexweb.keys import ring


class WrongCredentialKey(Exception):
    """No key of the ring opens this value: the ring is not the one it was stored with."""

    def __init__(self) -> None:
        super().__init__(
            "A credential cannot be decrypted with the keys in DEXWEB_CREDENTIAL_KEYS "
            "(or the key file under DEXWEB_VAR). Add the key it was stored with, or enter it anew."
        )


def opens(sealed: str, keys: MultiFernet | None = None) -> bool:
    """Whether a value, as it is stored, can be read with ``keys``, else with those in force."""
    try:
        (keys or ring()).decrypt(sealed.encode())
    except InvalidToken:
        return not sealed
    return True


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
