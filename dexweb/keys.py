"""The keys of an installation. Where none is given it makes its own: files of mode 0600 under DEXWEB_VAR."""

import os
import secrets
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from cryptography.fernet import Fernet, MultiFernet
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured


def signing_key(var: Path) -> str:
    """Django's SECRET_KEY for this installation, made at the first start."""
    return _kept(var / "secret.key", lambda: secrets.token_urlsafe(50))


def credential_keys(var: Path, given: list[str]) -> list[str]:
    """The Fernet keys of the credential ring, newest first: those given, else one kept here."""
    return (
        list(given)
        or _kept(var / "credentials.key", lambda: Fernet.generate_key().decode()).split()
    )


def ring() -> MultiFernet:
    """The key ring in force: encrypts with its first key, reads with any."""
    return _ring(tuple(credential_keys(settings.DEXWEB_VAR, settings.DEXWEB_CREDENTIAL_KEYS)))


def newest_key() -> MultiFernet:
    """The first key of the ring alone, with which new values are encrypted."""
    keys = credential_keys(settings.DEXWEB_VAR, settings.DEXWEB_CREDENTIAL_KEYS)
    return _ring(tuple(keys[:1]))


def demo_password(var: Path) -> str:
    """The password of the demo's users, made at the first start."""
    return _kept(var / "demo.password", lambda: secrets.token_urlsafe(9))


@lru_cache(maxsize=4)
def _ring(keys: tuple[str, ...]) -> MultiFernet:
    try:
        return MultiFernet([Fernet(key) for key in keys])
    except ValueError as error:
        raise ImproperlyConfigured(
            "DEXWEB_CREDENTIAL_KEYS must hold Fernet keys: 32 bytes, URL-safe base64, comma-separated."
        ) from error


def _kept(path: Path, make: Callable[[], str]) -> str:
    """Read ``path``, or write it whole and once, so that two processes starting together agree."""
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        pass
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(make())
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
    return path.read_text().strip()
