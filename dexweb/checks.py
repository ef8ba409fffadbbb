"""System checks of settings that only make sense together."""

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Warning, register


@register()
def check_engine_state_keys(
    app_configs: Sequence[AppConfig] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """A warning where the engine's state is encrypted with a key that only this machine has."""
    if not settings.DEXWEB_ENCRYPT_ENGINE_STATE or settings.DEXWEB_CREDENTIAL_KEYS:
        return []
    return [
        Warning(
            "DEXWEB_ENCRYPT_ENGINE_STATE is on, but DEXWEB_CREDENTIAL_KEYS is empty: what the "
            "engine stores is encrypted with the key file under DEXWEB_VAR. A worker or web server "
            "with another DEXWEB_VAR cannot read it.",
            hint="Set DEXWEB_CREDENTIAL_KEYS to the same keys on every worker and web server.",
            id="dexweb.engine.W001",
        )
    ]
