"""How the service is asked from outside: over HTTP and as a WebSocket, through whatever stands in front."""

import http.client
import ssl
import time
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

from serving.mirror import FORWARDED_FOR, HTTP_PATH, TICKET_HEADER, make_ticket
from serving.server import shown_address

PATIENCE_S = 10.0
MOST_BYTES = 20_000
# For documentation (RFC 5737), so that it is nobody's.
FORGED = "192.0.2.77"


class Certificate(NamedTuple):
    lives_s: float
    left_s: float


class Heard(NamedTuple):
    """What came back, and from where we had asked."""

    status: int
    body: str
    location: str
    own_address: tuple[str, int]
    certificate: Certificate | None


class NoAddress(ValueError):
    """What was named as an address of the service is none."""


def default_url() -> str:
    """In production the first host by its name; else the service that would run on this machine."""
    names = [host.lstrip(".") for host in settings.ALLOWED_HOSTS if host.strip(".*")]
    if settings.PRODUCTION and names:
        return f"https://{names[0]}"
    return shown_address(settings.HOST, settings.PORT)


def read_url(text: str) -> SplitResult:
    try:
        url = urlsplit(text if "//" in text else f"https://{text}")
        is_one = url.scheme in ("http", "https") and url.hostname and (url.port or 1)
    except ValueError:
        is_one = False
    if not is_one:
        raise NoAddress(f"{text!r} is not the address of a service: write https://api.example.com")
    return url


def ask(url: SplitResult, ticket: str = "", *, forged: bool = False) -> Heard:
    """`forged`: as a client that claims another address. Raises OSError and http.client.HTTPException."""
    headers = {TICKET_HEADER: ticket or make_ticket(), "Connection": "close"}
    if forged:
        headers[FORWARDED_FOR] = FORGED
    connection = _connection(url)
    try:
        connection.request("GET", f"{url.path.rstrip('/')}{HTTP_PATH}", headers=headers)
        host, port = connection.sock.getsockname()[:2]
        certificate = _certificate(connection.sock)
        answer = connection.getresponse()
        body = answer.read(MOST_BYTES).decode(errors="replace")
        return Heard(answer.status, body, answer.headers.get("Location", ""), (host, port), certificate)
    finally:
        connection.close()


def _connection(url: SplitResult) -> http.client.HTTPConnection:
    host = url.hostname or ""
    if url.scheme == "http":
        return http.client.HTTPConnection(host, url.port or 80, timeout=PATIENCE_S)
    context = ssl.create_default_context()
    return http.client.HTTPSConnection(host, url.port or 443, timeout=PATIENCE_S, context=context)


def _certificate(sock: object) -> Certificate | None:
    found = sock.getpeercert() if isinstance(sock, ssl.SSLSocket) else None
    if not found:
        return None
    begins, ends = (ssl.cert_time_to_seconds(str(found[name])) for name in ("notBefore", "notAfter"))
    return Certificate(ends - begins, ends - time.time())
