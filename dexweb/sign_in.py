"""How often signing in may fail. Counted in the cache, so by each web process for itself.

A try is counted before its password is looked at and given back when it was right: so many at once
are no way around the bounds. While a pause lasts no password is looked at, the right one neither.
"""

import ipaddress
import logging
import math
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.forms import AuthenticationForm
from django.core.cache import cache
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils.crypto import salted_hmac

from approvals_app import audit
from dexweb.counts import count

SECONDS = 5 * 60
#: Failures within `SECONDS`, after which a pause as long begins.
FOR_NAME_AND_ADDRESS, FOR_ADDRESS, FOR_NAME = 10, 50, 100

log = logging.getLogger(__name__)


class SignInForm(AuthenticationForm):
    """Name and password, as long as there were not too many wrong ones. ``wait``: seconds until then."""

    wait = 0

    def clean(self) -> dict[str, Any]:
        if not (self.cleaned_data.get("username") and self.cleaned_data.get("password")):
            return super().clean()
        tries = Tries.of(self.cleaned_data["username"], address_of(self.request))
        self.wait = tries.begin()
        if self.wait:
            minutes = math.ceil(self.wait / 60)
            unit = "minute" if minutes == 1 else "minutes"
            raise ValidationError(f"Too many tries; try again in {minutes} {unit}.", "paused")
        try:
            cleaned: dict[str, Any] = super().clean()
        except ValidationError:
            tries.failed()
            raise
        tries.succeeded()
        return cleaned


@dataclass(frozen=True)
class Bound:
    """At most ``most`` failures of what it is ``about``: a name as typed, an address, or both."""

    key: str
    most: int
    about: dict[str, str]

    def seconds_left(self) -> int:
        until = cache.get(f"{self.key}:until", 0)
        return max(1, math.ceil(until - time.time()))

    def full(self) -> bool:
        return bool(cache.get(self.key, 0) >= self.most)

    def take(self) -> int:
        taken = count(self.key, SECONDS)
        if taken == 1:
            cache.set(f"{self.key}:until", time.time() + SECONDS, SECONDS)
        return taken

    def give_back(self) -> None:
        with suppress(ValueError):
            cache.decr(self.key)

    def pause(self) -> None:
        cache.set(f"{self.key}:until", time.time() + SECONDS, SECONDS)
        cache.touch(self.key, SECONDS)
        said = self.about | ({"name": known(self.about["name"])} if "name" in self.about else {})
        log.warning("Signing in is paused for %s min: %s", SECONDS // 60, said)
        subject = "; ".join(f"{what} {value}" for what, value in said.items())
        audit.record(None, "signin.paused", subject, failures=self.most, minutes=SECONDS // 60)


class Tries:
    """Those of one name from one address; each counts for both, and for the two together."""

    def __init__(self, bounds: list[Bound]) -> None:
        self.bounds = bounds
        self.counts: list[int] = []

    @classmethod
    def of(cls, name: str, address: str) -> "Tries":
        # The one for an address first: when that is full, nothing is kept about the names.
        who, where = {"name": name}, {"address": address}
        return cls(
            [
                Bound(_key("address", address), FOR_ADDRESS, where),
                Bound(_key("name", name), FOR_NAME, who),
                Bound(_key("both", name, address), FOR_NAME_AND_ADDRESS, who | where),
            ]
        )

    def begin(self) -> int:
        """Count one, unless that is one too many: then the seconds to wait."""
        full = next((bound for bound in self.bounds if bound.full()), None)
        for bound in self.bounds if full is None else ():
            self.counts.append(bound.take())
            if self.counts[-1] > bound.most:
                full = bound
                break
        if full is None:
            return 0
        for bound in self.bounds[: len(self.counts)]:
            bound.give_back()
        return full.seconds_left()

    def failed(self) -> None:
        for bound, taken in zip(self.bounds, self.counts, strict=True):
            # Only one can have been the last, so each pause is told once.
            if taken == bound.most:
                bound.pause()

    def succeeded(self) -> None:
        *others, both = self.bounds
        cache.delete(both.key)
        for bound in others:
            bound.give_back()


def address_of(request: HttpRequest) -> str:
    """Whom the request came from; the whole network of an IPv6 address, which one machine has.

    Behind a proxy that is trusted (`DEXWEB_HTTPS`) it is what that one added last; what stands before
    it anybody can write.
    """
    said = request.META.get("REMOTE_ADDR", "")
    if settings.DEXWEB_HTTPS:
        said = request.headers.get("X-Forwarded-For", "").rpartition(",")[2].strip() or said
    try:
        address = ipaddress.ip_address(said)
    except ValueError:
        return said[:64]
    if not isinstance(address, ipaddress.IPv6Address):
        return str(address)
    if address.ipv4_mapped:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((int(address), 64), strict=False))


def known(name: str) -> str:
    """The name, if somebody has it: what else is typed there may be a password."""
    people = get_user_model().objects
    return name if people.filter(username=name).exists() else "that nobody has"


def _key(*what: str) -> str:
    return (
        f"sign-in:{salted_hmac('dexweb sign-in', '|'.join(what), algorithm='sha256').hexdigest()}"
    )
