"""Model keys and tool credentials."""

from typing import Any

from django.db import models
from django.db.models.functions import Cast

from sessions_app.models.encrypted import EncryptedTextField, WrongCredentialKey, opens


class CredentialUnreadable(Exception):
    """No key in force opens this one; its words name it and say what to do."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"The credential “{name}” cannot be decrypted: the key it was stored with is not in "
            "DEXWEB_CREDENTIAL_KEYS (or the key file under DEXWEB_VAR). Add that key, or enter the "
            "credential anew in the admin site."
        )


class CredentialQuerySet(models.QuerySet["Credential"]):
    def without_value(self) -> "CredentialQuerySet":
        """For every list and form: the secret is not even read."""
        return self.defer("value")

    def sealed(self) -> "CredentialQuerySet":
        """The same, with what `readable` needs: the value as it is stored."""
        return self.without_value().annotate(sealed=Cast("value", models.TextField()))


class Credential(models.Model):
    """A secret under a name. Its value is written, never shown; the last four characters are."""

    name = models.SlugField(max_length=80, unique=True)
    value = EncryptedTextField(blank=True)
    last_four = models.CharField(max_length=4, blank=True, editable=False)
    base_url = models.URLField(
        "base URL",
        blank=True,
        help_text="Only for a model server other than the provider's own, such as one that speaks "
        "OpenAI's protocol. The key is sent there and nowhere else.",
    )
    enabled = models.BooleanField(default=True)
    revision = models.PositiveIntegerField(default=1, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    objects = CredentialQuerySet.as_manager()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    def save(self, *args: Any, **kwargs: Any) -> None:
        if "value" not in self.get_deferred_fields():
            # Of a short secret four characters would be most of it.
            self.last_four = self.value[-4:] if len(self.value) >= 16 else ""
        super().save(*args, **kwargs)

    def secret(self) -> str:
        """The value in clear. Raises `CredentialUnreadable`."""
        try:
            return self.value
        except WrongCredentialKey as error:
            raise CredentialUnreadable(self.name) from error

    @property
    def readable(self) -> bool:
        """Whether the keys in force open it; of a row from `CredentialQuerySet.sealed`."""
        return opens(self.sealed)  # type: ignore[attr-defined]
