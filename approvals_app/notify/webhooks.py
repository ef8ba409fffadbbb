"""POSTs to addresses that people entered: only to the public internet, signed, and never for long."""

import hashlib
import hmac
import http.client
import ipaddress
import json
import socket
import ssl
import threading
import time
from contextlib import suppress
from typing import Any
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

from approvals_app.notify.errors import AddressRefused, NotDelivered

TIMEOUT = 5.0
MOST_READ = 1024

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
# Of these the last four bytes are an IPv4 address, to which a gateway would pass it on.
TRANSLATED = (ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("::/96"))


def send_slack(url: str, text: str, delivery_id: str) -> None:
    body = json.dumps({"text": text}).encode()
    post(url, body, {"Dexweb-Delivery": delivery_id})


def send_signed(url: str, secret: str, content: dict[str, Any], delivery_id: str) -> None:
    body = json.dumps(content, ensure_ascii=False).encode()
    timestamp = str(int(time.time()))
    headers = {
        "Dexweb-Delivery": delivery_id,
        "Dexweb-Timestamp": timestamp,
        "Dexweb-Signature": f"sha256={signature(secret, timestamp, body)}",
    }
    post(url, body, headers)


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """HMAC-SHA256 of "timestamp.body" in hex; the body names the delivery, so that is signed too."""
    return hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()


def post(url: str, body: bytes, headers: dict[str, str]) -> None:
    """Returns once the server took it (2xx), within `TIMEOUT` in all. No redirect is followed."""
    parts = checked(url)
    connection = _Connection(parts)
    path = f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}"
    headers = {"Content-Type": "application/json", "User-Agent": "Dexweb", **headers}
    alarm = threading.Timer(TIMEOUT, connection.abort)
    alarm.daemon = True
    alarm.start()
    try:
        connection.request("POST", path, body, headers)
        response = connection.getresponse()
        if connection.aborted:
            # What ends in the middle of its head looks whole.
            raise TimeoutError
        said = _beginning(response)
    except (OSError, http.client.HTTPException, ValueError) as error:
        why = f"no answer within {TIMEOUT:.0f} s" if connection.aborted else _words(error)
        raise NotDelivered(f"The server did not take it: {why}") from error
    finally:
        alarm.cancel()
        connection.close()
    if 300 <= response.status < 400:
        raise NotDelivered(f"It answered {response.status}, a redirect; none is followed.")
    if not 200 <= response.status < 300:
        raise NotDelivered(f"It answered {response.status}: {said or response.reason}")


def checked(url: str) -> SplitResult:
    """``url`` in parts, if it is one that could be sent to; it is not resolved here."""
    try:
        parts = urlsplit(url)
        usable = parts.hostname is not None and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
    if not usable or parts.scheme not in ("https", "http") or not url.isascii():
        raise AddressRefused("Enter an address that begins with https:// or http://.")
    if parts.username is not None or parts.password is not None:
        raise AddressRefused("A user name or password in the address is not sent.")
    if any(char <= " " for char in url):
        raise AddressRefused("An address holds no space and no control character.")
    return parts


def resolved(host: str, port: int) -> str:
    """An address of ``host``, as numbers; refused if any of its addresses is not public."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise NotDelivered(f"{host} was not found: {_words(error)}") from error
    numbers = [str(entry[4][0]) for entry in found]
    if not settings.DEXWEB_WEBHOOK_ALLOW_PRIVATE:
        for number in numbers:
            if not is_public(ipaddress.ip_address(number.partition("%")[0])):
                raise AddressRefused(
                    f"{host} is {number}, which is not a public address. "
                    "DEXWEB_WEBHOOK_ALLOW_PRIVATE allows such ones."
                )
    return numbers[0]


def is_public(address: Address) -> bool:
    """Whether ``address``, and the IPv4 one that it may stand for, is on the public internet."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is None and any(address in network for network in TRANSLATED):
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(inner)
        if address.teredo is not None or address.is_site_local:
            return False
    return address.is_global and not address.is_multicast and not address.is_reserved


class _Connection(http.client.HTTPConnection):
    """Connects to the address that was checked, not to what the name might be a moment later."""

    def __init__(self, parts: SplitResult) -> None:
        self.tls = parts.scheme == "https"
        port = parts.port or (443 if self.tls else 80)
        super().__init__(str(parts.hostname), port, timeout=TIMEOUT)
        self.default_port = 443 if self.tls else 80
        self.aborted = False

    def connect(self) -> None:
        number = resolved(self.host, self.port)
        self.sock = socket.create_connection((number, self.port), TIMEOUT)
        if self.tls:
            context = ssl.create_default_context()
            # The handshake by itself, so that `abort` finds a socket to end meanwhile.
            self.sock = context.wrap_socket(
                self.sock, server_hostname=self.host, do_handshake_on_connect=False
            )
            self.sock.do_handshake()
        if self.aborted:
            raise TimeoutError

    def abort(self) -> None:
        """End the connection from another thread, whatever it waits for."""
        self.aborted = True
        if self.sock is not None:
            with suppress(OSError):
                # Not SSLSocket's own, which would also forget the session under the other's hands.
                socket.socket.shutdown(self.sock, socket.SHUT_RDWR)


def _beginning(response: http.client.HTTPResponse) -> str:
    """What the server says, as far as one line of it is of use; the rest is never read."""
    if response.status < 400:
        return ""
    with suppress(OSError, http.client.HTTPException, ValueError):
        text = response.read(MOST_READ).decode("utf-8", "replace")
        return " ".join(text.split())[:200]
    return ""


def _words(error: BaseException) -> str:
    return str(error) or type(error).__name__
