"""What the headers of a request say: which host it was meant for, and whether its key crossed the network in
the clear."""

from functools import lru_cache
from typing import Any

from django.conf import settings
from django.http.request import split_domain_port, validate_host

from core.contract.errors import HttpsRequired, UnknownHost


def header(scope: dict[str, Any], name: bytes) -> str | None:
    """Reads the scope itself: `request.headers` would decode every header for the sake of one."""
    values = [value for sent, value in scope["headers"] if sent == name]
    return b",".join(values).decode("latin-1") if values else None


def check_host(scope: dict[str, Any]) -> None:
    """Refuse a request that was meant for another host; only HTTP/1.0 may omit the Host header."""
    host = header(scope, b"host")
    if host is None and scope["http_version"] == "1.0":
        return
    if not is_our_host(host or ""):
        raise UnknownHost


@lru_cache(maxsize=128)
def is_our_host(host: str) -> bool:
    domain, _ = split_domain_port(host)
    return bool(domain) and validate_host(domain, settings.ALLOWED_HOSTS)


KEY_HEADERS = (b"x-api-key", b"x-ingest-key", b"authorization")
IN_THE_CLEAR = (b"http", b"ws")


def came_plain(scope: dict[str, Any]) -> bool:
    """Only the proxy can tell: a connection in the clear may be its own, with TLS in front of it."""
    if not settings.PRODUCTION or settings.ALLOW_PLAIN_HTTP:
        return False
    protocols = next((value for name, value in scope["headers"] if name == b"x-forwarded-proto"), b"")
    # Of several values, the first is the protocol of the client itself.
    return protocols.partition(b",")[0].strip().lower() in IN_THE_CLEAR


def refuse_plain(scope: dict[str, Any]) -> None:
    """Called before the key is looked up. A request without a key is refused later, as one that lacks it."""
    if came_plain(scope) and any(name in KEY_HEADERS for name, _ in scope["headers"]):
        raise HttpsRequired
