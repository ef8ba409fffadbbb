"""Parts of addresses."""


class NameConverter:
    """A name that the database may be asked for: PostgreSQL fails on a NUL, and nothing has one in its."""

    regex = r"[^/\x00]+"

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value
