"""The headers that decide where a request ends, its target, and upgrades: one reading of each, or none."""

from base64 import b64decode
from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import unquote

import httptools

from .bounds import MOST_DIGITS
from .refusals import (
    BAD_HANDSHAKE,
    BAD_UPGRADE,
    MALFORMED,
    OTHER_CODING,
    OTHER_HOST,
    OTHER_WEBSOCKET,
    RequestRefused,
)

Noted = dict[bytes, list[bytes]]
KEY_HEADER, VERSION_HEADER = b"sec-websocket-key", b"sec-websocket-version"
FRAMING_HEADERS = frozenset(
    (b"host", b"content-length", b"expect", b"transfer-encoding", b"upgrade", KEY_HEADER, VERSION_HEADER)
)


def read_size(noted: Noted, version: str) -> int | None:
    """The length of the body; None where it comes in chunks."""
    codings, lengths = noted.get(b"transfer-encoding"), noted.get(b"content-length")
    if codings is not None:
        if lengths or version == "1.0" or [coding.strip().lower() for coding in codings] != [b"chunked"]:
            raise RequestRefused(OTHER_CODING)
        return None
    if lengths is None:
        return 0
    if len(lengths) > 1 or not lengths[0].isdigit() or len(lengths[0]) > MOST_DIGITS:
        raise RequestRefused(MALFORMED)
    return int(lengths[0])


SCHEMES = (b"http", b"https")


class Target(NamedTuple):
    path: str
    raw_path: bytes
    query: bytes


def read_target(url: bytes, host: bytes | None) -> Target:
    try:
        parsed = httptools.parse_url(url)
        raw_path: bytes = parsed.path or b"/"
        path = raw_path.decode("ascii")
    except (httptools.HttpParserInvalidURLError, UnicodeDecodeError):
        raise RequestRefused(MALFORMED) from None
    if parsed.host is not None:
        check_named(url, parsed.schema, host)
    return Target(unquote(path) if "%" in path else path, raw_path, parsed.query or b"")


def check_named(url: bytes, scheme: bytes | None, host: bytes | None) -> None:
    """A whole address as the target, as a proxy gets it, must name the same host as the Host header."""
    if scheme is None or scheme.lower() not in SCHEMES:
        raise RequestRefused(MALFORMED)
    named = url.partition(b"://")[2].partition(b"/")[0].partition(b"?")[0]
    if host is None or named.lower() != host.lower():
        raise RequestRefused(OTHER_HOST)


KEY_BYTES = 16


def begins_websocket(method: str, version: str, noted: Noted) -> bool:
    """This server supports no other upgrade (such as h2c), and may ignore that one was asked for."""
    if [value.strip().lower() for value in noted.get(b"upgrade", ())] != [b"websocket"]:
        return False
    if method != "GET" or version != "1.1":
        raise RequestRefused(BAD_UPGRADE)
    if noted.get(VERSION_HEADER) != [b"13"]:
        raise RequestRefused(OTHER_WEBSOCKET)
    if not is_key(noted.get(KEY_HEADER, [])):
        raise RequestRefused(BAD_HANDSHAKE)
    return True


def is_key(sent: list[bytes]) -> bool:
    try:
        return len(sent) == 1 and len(b64decode(sent[0], validate=True)) == KEY_BYTES
    except ValueError:
        return False


def websocket_request(method: str, url: bytes, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """The head once more, for the protocol that reads it from its beginning."""
    lines = [
        method.encode() + b" " + url + b" HTTP/1.1",
        *(b": ".join(header) for header in headers),
        b"",
        b"",
    ]
    return b"\r\n".join(lines)
