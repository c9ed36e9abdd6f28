"""The names this service answers to: no middleware of /api would ask."""

from __future__ import annotations

from functools import lru_cache

from django.conf import settings
from django.http.request import split_domain_port, validate_host

from .exceptions import InvalidParameter


def check_host(host: str | None, http_version: str) -> None:
    """Refuse a request that was meant for somebody else; only HTTP/1.0 may leave out whom it is meant for."""
    if host is None and http_version == "1.0":
        return
    if not is_ours(host or ""):
        raise InvalidParameter("The Host header does not name this service.", field="Host")


@lru_cache(maxsize=128)
def is_ours(host: str) -> bool:
    domain, _ = split_domain_port(host)
    return bool(domain) and validate_host(domain, settings.ALLOWED_HOSTS)
