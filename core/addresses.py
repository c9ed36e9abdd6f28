"""Where a request comes from.

The server has already put a trusted proxy's word into the scope. A request that seems to come from this
machine gains nothing by that, because behind a proxy on the same machine every request does. Demo keys and
sessions are valid by themselves; they are only refused to callers who are plainly elsewhere."""

from functools import lru_cache
from io import BytesIO
from ipaddress import ip_address, ip_network
from typing import Any

from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest
from django.http.request import split_domain_port


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


def socket_is_loopback(scope: dict[str, Any]) -> bool:
    """The same of a WebSocket. Of clients that are elsewhere, no request is made to see that."""
    return _is_address(address_of(scope)) and is_loopback(ASGIRequest({**scope, "method": "GET"}, BytesIO()))


def host_is_loopback(host: str) -> bool:
    return host == "localhost" or _is_address(host.strip("[]"))


def _is_address(text: str | None) -> bool:
    try:
        return ip_address(text or "").is_loopback
    except ValueError:
        return False
