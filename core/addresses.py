"""Where a request comes from, whom it was meant for, and whether its key crossed the network in the clear.

The server has already put a trusted proxy's word into the scope. A request that seems to come from this
machine gains nothing by that, because behind a proxy on the same machine every request does. Demo keys and
sessions are valid by themselves; they are only refused to callers who are plainly elsewhere."""

from functools import lru_cache
from ipaddress import ip_address, ip_network
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.http.request import split_domain_port, validate_host

from core.contract.errors import HttpsRequired, InvalidParameter


def header(scope: dict[str, Any], name: bytes) -> str | None:
    """Reads the scope itself: `request.headers` would decode every header for the sake of one."""
    values = [value for sent, value in scope["headers"] if sent == name]
    return b",".join(values).decode("latin-1") if values else None


def address_of(scope: dict[str, Any]) -> str:
    client = scope.get("client")
    return str(client[0]) if client else ""


@lru_cache(maxsize=4096)
def network_of(address: str) -> str:
    """An IPv6 address stands for its /64, since whoever has one address has all 2^64 of them."""
    try:
        found = ip_address(address)
    except ValueError:
        return "unknown"
    if found.version == 6 and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    return str(found) if found.version == 4 else str(ip_network((int(found), 64), strict=False))


FORWARDED = ("HTTP_X_FORWARDED_FOR", "HTTP_FORWARDED", "HTTP_X_REAL_IP", "HTTP_VIA")


def is_loopback(request: HttpRequest) -> bool:
    """Both ends are loopback, the Host header says so, and no proxy forwards for somebody else."""
    meta = request.META
    if any(name in meta for name in FORWARDED):
        return False
    host, _ = split_domain_port(meta.get("HTTP_HOST", ""))
    return (
        host_is_loopback(host)
        and _is_address(meta.get("SERVER_NAME"))
        and _is_address(meta.get("REMOTE_ADDR"))
    )


def host_is_loopback(host: str) -> bool:
    return host == "localhost" or _is_address(host.strip("[]"))


def _is_address(text: str | None) -> bool:
    try:
        return ip_address(text or "").is_loopback
    except ValueError:
        return False


def check_host(scope: dict[str, Any]) -> None:
    """Refuse a request that was meant for another host; only HTTP/1.0 may omit the Host header."""
    host = header(scope, b"host")
    if host is None and scope["http_version"] == "1.0":
        return
    if not is_ours(host or ""):
        raise InvalidParameter("The Host header does not name this service.", field="Host")


@lru_cache(maxsize=128)
def is_ours(host: str) -> bool:
    domain, _ = split_domain_port(host)
    return bool(domain) and validate_host(domain, settings.ALLOWED_HOSTS)


KEY_HEADERS = (b"x-api-key", b"x-ingest-key", b"authorization")
IN_THE_CLEAR = (b"http", b"ws")


def came_plain(scope: dict[str, Any]) -> bool:
    """Only the proxy can tell: a connection in the clear may be its own, with TLS in front of it."""
    if not settings.PRODUCTION or settings.ALLOW_PLAIN_HTTP:
        return False
    said = next((value for name, value in scope["headers"] if name == b"x-forwarded-proto"), b"")
    # Of several values, the first is the protocol of the client itself.
    return said.partition(b",")[0].strip().lower() in IN_THE_CLEAR


def refuse_plain(scope: dict[str, Any]) -> None:
    """Called before the key is looked up. A request without a key is refused later, as one that lacks it."""
    if came_plain(scope) and any(name in KEY_HEADERS for name, _ in scope["headers"]):
        raise HttpsRequired


EXTENSION = "tickwire.connection"


def note_known(scope: dict[str, Any]) -> None:
    """A valid key came over this connection, so it is not among the first to be closed when few are left."""
    extensions = scope.get("extensions")
    if extensions and (connection := extensions.get(EXTENSION)) is not None:
        connection.is_known = True
