"""Which entries of the audit log a list shows: one reading of the filters for page, export and API."""

from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from urllib.parse import urlencode

from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.dateparse import parse_date, parse_datetime

from approvals_app.models import AuditEntry

ORDER = ("-seq",)
#: How many newer entries stand above one that a link leads to.
ABOVE = 5
LONGEST = 160


@dataclass(frozen=True)
class AuditFilters:
    """``action`` is a whole one or its first word; ``since`` and ``until`` are days or moments,
    both included; ``entry`` begins the list shortly above one number."""

    actor: str = ""
    action: str = ""
    subject: str = ""
    session: str = ""
    since: str = ""
    until: str = ""
    entry: str = ""
    ignored: list[str] = field(default_factory=list, compare=False)

    @classmethod
    def read(cls, values: dict[str, str]) -> "AuditFilters":
        """What can be understood of ``values``; the names of the rest are in ``ignored``."""
        given: dict[str, str] = {}
        ignored: list[str] = []
        for name in NAMES:
            value = values.get(name, "").strip()
            if not value:
                continue
            if _understood(name, value):
                given[name] = value
            else:
                ignored.append(name)
        return cls(**given, ignored=ignored)

    def select(self) -> QuerySet[AuditEntry]:
        rows = AuditEntry.objects.all()
        if self.actor:
            rows = rows.filter(actor_name=self.actor)
        if self.action:
            rows = rows.filter(Q(action=self.action) | Q(action__startswith=f"{self.action}."))
        if self.subject:
            rows = rows.filter(subject=self.subject)
        if self.session:
            rows = rows.filter(session_id=self.session)
        if self.since:
            rows = rows.filter(at__gte=_moment(self.since))
        if self.until:
            rows = rows.filter(at__lt=_after(self.until))
        if self.entry:
            rows = rows.filter(seq__lte=int(self.entry) + ABOVE)
        return rows

    def query(self, **more: str) -> str:
        """The filters as an address has them."""
        values = {name: getattr(self, name) for name in NAMES} | more
        return urlencode({name: value for name, value in values.items() if value})

    def as_detail(self) -> dict[str, str]:
        return {name: getattr(self, name) for name in NAMES if getattr(self, name)}

    def __bool__(self) -> bool:
        return bool(self.as_detail())


NAMES = tuple(f.name for f in fields(AuditFilters) if f.name != "ignored")


def _understood(name: str, value: str) -> bool:
    if name == "entry":
        return value.isascii() and value.isdigit() and len(value) < 18
    if name in ("since", "until"):
        return _moment(value) is not None
    return len(value) <= LONGEST and "\0" not in value


def _moment(text: str) -> datetime | None:
    """A day is its first moment in the site's time zone; a moment without a zone is in that too."""
    try:
        day = parse_date(text)
        moment = datetime.combine(day, datetime.min.time()) if day else parse_datetime(text)
    except ValueError:
        return None
    if moment is None or not 1900 < moment.year < 9000:
        return None
    return timezone.make_aware(moment) if timezone.is_naive(moment) else moment


def _after(text: str) -> datetime | None:
    """The moment from which on nothing is shown: the day, or the moment itself, counts still."""
    moment = _moment(text)
    if moment is None:
        return None
    whole_day = len(text) == len("2026-01-31")
    return moment + (timedelta(days=1) if whole_day else timedelta(microseconds=1))
