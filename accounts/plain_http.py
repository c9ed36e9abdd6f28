"""Keys that crossed the network in the clear: production refuses them, so that their owner learns of it."""

from __future__ import annotations

from typing import Any

from django.conf import settings

from .exceptions import HttpsRequired

KEY_HEADERS = (b"x-api-key", b"x-ingest-key", b"authorization")
IN_THE_CLEAR = (b"http", b"ws")


def came_plain(scope: dict[str, Any]) -> bool:
    """The proxy says so; without its word a connection in the clear may be the proxy's own, behind TLS."""
    if not settings.PRODUCTION or settings.ALLOW_PLAIN_HTTP:
        return False
    said = next((value for name, value in scope["headers"] if name == b"x-forwarded-proto"), b"")
    # The first of several is what the client itself spoke.
    return said.partition(b",")[0].strip().lower() in IN_THE_CLEAR


def refuse_plain(scope: dict[str, Any]) -> None:
    """Before the key is looked at. Who sends none hears that it is missing."""
    if came_plain(scope) and any(name in KEY_HEADERS for name, _ in scope["headers"]):
        raise HttpsRequired
