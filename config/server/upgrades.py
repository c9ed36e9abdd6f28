"""Requests to go on with another protocol on the same connection."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable

from .framing import KEY, VERSION, Noted
from .refusals import BAD_HANDSHAKE, BAD_UPGRADE, OTHER_WEBSOCKET, Refused

KEY_BYTES = 16
Header = tuple[bytes, bytes]


def begins_websocket(method: str, version: str, noted: Noted) -> bool:
    """Of any other upgrade (h2c, for one) this server knows nothing, and may ignore that it was asked for."""
    if [value.strip().lower() for value in noted.get(b"upgrade", ())] != [b"websocket"]:
        return False
    if method != "GET" or version != "1.1":
        raise Refused(BAD_UPGRADE)
    if noted.get(VERSION) != [b"13"]:
        raise Refused(OTHER_WEBSOCKET)
    if not is_key(noted.get(KEY, [])):
        raise Refused(BAD_HANDSHAKE)
    return True


def is_key(sent: list[bytes]) -> bool:
    try:
        return len(sent) == 1 and len(b64decode(sent[0], validate=True)) == KEY_BYTES
    except ValueError:
        return False


def websocket_request(method: str, url: bytes, headers: Iterable[Header]) -> bytes:
    """The head once more, for the protocol that reads it from its beginning."""
    lines = [
        method.encode() + b" " + url + b" HTTP/1.1",
        *(b": ".join(header) for header in headers),
        b"",
        b"",
    ]
    return b"\r\n".join(lines)
