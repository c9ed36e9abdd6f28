"""Whether a request seems to stay on this machine. It opens nothing: behind a proxy beside the service
everybody seems to. Demo keys and sessions, good for themselves, are only shut to who plainly is elsewhere."""

from __future__ import annotations

from ipaddress import ip_address

from django.http import HttpRequest
from django.http.request import split_domain_port

FORWARDED = ("HTTP_X_FORWARDED_FOR", "HTTP_FORWARDED", "HTTP_X_REAL_IP", "HTTP_VIA")


def is_loopback(request: HttpRequest) -> bool:
    """Both ends are loopback, the caller named it so, and no proxy speaks for somebody else."""
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
