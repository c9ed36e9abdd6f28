"""Where a request comes from.

The server has already put a trusted proxy's word into the scope. A request that seems to come from this
machine gains nothing by that, because behind a proxy on the same machine every request does. Demo keys and
sessions are valid by themselves; they are only refused to callers who are plainly elsewhere."""

from collections.abc import Iterable
from functools import lru_cache
from ipaddress import ip_address, ip_network
from typing import Any

from django.http import HttpRequest
from django.http.request import split_domain_port


def address_of(scope: dict[str, Any]) -> str:
    client = scope.get("client")
    return str(client[0]) if client else ""


@lru_cache(maxsize=4096)
def network_of(address: str) -> str:
    """An IPv6 address stands for its /64, since a host with one address has all 2^64 of them."""
    try:
        found = ip_address(address)
    except ValueError:
        return "unknown"
    if found.version == 6 and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    return str(found) if found.version == 4 else str(ip_network((int(found), 64), strict=False))


FORWARDED = (b"x-forwarded-for", b"forwarded", b"x-real-ip", b"via")
NAMES = (b"host", *FORWARDED)


def is_loopback(scope: dict[str, Any]) -> bool:
    return ends_are_loopback(scope.get("client"), scope.get("server")) and headers_name_loopback(
        scope["headers"]
    )


def scope_of(request: HttpRequest) -> dict[str, Any]:
    """The ASGI scope, or what we use of it where Django handles synchronously, as its test client does."""
    try:
        return request.scope  # type: ignore[attr-defined, no-any-return]
    except AttributeError:
        meta = request.META
        return {
            "path": request.path,
            "headers": [(name.lower().encode(), value.encode()) for name, value in request.headers.items()],
            "http_version": meta.get("SERVER_PROTOCOL", "HTTP/1.1")[5:],
            "query_string": meta.get("QUERY_STRING", "").encode(),
            "client": (meta.get("REMOTE_ADDR"), 0),
            "server": (meta.get("SERVER_NAME"), 0),
        }


def headers_name_loopback(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """The Host header names this machine, and no proxy forwards for another client."""
    sent = [(name, value) for name, value in headers if name in NAMES]
    hosts = b",".join(value for name, value in sent if name == b"host")
    host, _ = split_domain_port(hosts.decode("latin-1"))
    return all(name == b"host" for name, _ in sent) and host_is_loopback(host)


def ends_are_loopback(*ends: tuple[str, int | None] | None) -> bool:
    return all(end is not None and _is_address(end[0]) for end in ends)


def host_is_loopback(host: str) -> bool:
    return host == "localhost" or _is_address(host.strip("[]"))


@lru_cache(maxsize=1024)
def _is_address(text: str | None) -> bool:
    try:
        return ip_address(text or "").is_loopback
    except ValueError:
        return False
