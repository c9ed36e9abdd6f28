"""Whether a request stays on this machine: demo keys and the demo login work nowhere else."""

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
