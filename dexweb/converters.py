"""Parts of addresses."""

from django.urls.converters import StringConverter


class NameConverter(StringConverter):
    """A name that the database may be asked for: PostgreSQL fails on a NUL, and nothing has one in its."""

    regex = r"[^/\x00]+"
