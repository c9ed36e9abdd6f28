"""What is read off a connection before anything is taken from it."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from accounts.hosts import is_ours


def sent_key(scope: dict[str, Any]) -> str | None:
    """`X-Ingest-Key: tw_ingest_…` or `Authorization: Bearer tw_ingest_…`."""
    for name, value in scope["headers"]:
        if name == b"x-ingest-key":
            return str(value, "latin-1")
        if name == b"authorization" and value[:7].lower() == b"bearer ":
            return str(value[7:].strip(), "latin-1")
    return None


def is_welcome(scope: dict[str, Any]) -> bool:
    """A socket meant for us, of a program or of a page of our own: a browser names the page it serves."""
    headers = {name: str(value, "latin-1") for name, value in scope["headers"]}
    if not is_ours(headers.get(b"host", "")):
        return False
    try:
        return b"origin" not in headers or is_ours(urlsplit(headers[b"origin"]).netloc)
    except ValueError:
        return False
