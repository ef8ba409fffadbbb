"""Connections to MCP servers, the sources of tools."""

import json

from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db import models
from django.utils.crypto import salted_hmac

CONNECTION_NAME = RegexValidator(
    r"^[a-z][a-z0-9-]*$", "Use lower-case letters, digits and hyphens; start with a letter."
)


class Connection(models.Model):
    """One MCP server, over stdio or streamable HTTP. Its tools are named ``<connection>__<tool>``."""

    class Transport(models.TextChoices):
        STDIO = "stdio", "A program on this machine (stdio)"
        HTTP = "http", "A server (streamable HTTP)"

    name = models.CharField(max_length=40, unique=True, validators=[CONNECTION_NAME])
    transport = models.CharField(max_length=8, choices=Transport.choices, default=Transport.STDIO)
    command = models.JSONField(
        default=list,
        blank=True,
        help_text='For stdio, a list of words: ["python", "-m", "my_shop"]',
    )
    env = models.JSONField(
        "environment",
        default=dict,
        blank=True,
        help_text="For stdio. “${credential}” in a value stands for the credential; without it, "
        "the credential is given as DEXWEB_CREDENTIAL.",
    )
    url = models.URLField("URL", blank=True)
    headers = models.JSONField(
        default=dict,
        blank=True,
        help_text="For HTTP. “${credential}” in a value stands for the credential; without it, "
        "the credential is sent as a bearer token.",
    )
    credential = models.ForeignKey(
        "sessions_app.Credential", null=True, blank=True, on_delete=models.PROTECT
    )
    enabled = models.BooleanField(default=True)
    revision = models.PositiveIntegerField(default=1, editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def prefix(self) -> str:
        """What the full names of its tools begin with."""
        return f"{self.name}__"

    def stamp(self) -> str:
        """Changes when this leads to another program, server or account.

        Keyed, since an environment may hold what nobody is to guess from it. A new value of the
        same credential is the same account.
        """
        credential = self.credential.name if self.credential else ""
        parts = [self.transport, self.command, self.env, self.url, self.headers, credential]
        text = json.dumps(parts, sort_keys=True)
        return salted_hmac("dexweb.connection", text, algorithm="sha256").hexdigest()

    def clean(self) -> None:
        if self.transport == self.Transport.STDIO:
            words = self.command
            if not (
                isinstance(words, list) and words and all(isinstance(w, str) and w for w in words)
            ):
                raise ValidationError(
                    {
                        "command": 'Give the program as a list of words, like ["python", "-m", "my_shop"].'
                    }
                )
        elif not self.url:
            raise ValidationError(
                {"url": "An HTTP connection needs the address of its MCP endpoint."}
            )
        for name in ("env", "headers"):
            value = getattr(self, name)
            if not (isinstance(value, dict) and all(isinstance(v, str) for v in value.values())):
                raise ValidationError(
                    {name: 'Give names and texts, like {"SHOP_DB": "shop.sqlite3"}.'}
                )
