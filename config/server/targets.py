"""What a request asks for, from its first line."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import unquote

import httptools

from .refusals import MALFORMED, OTHER_HOST, Refused

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
        raise Refused(MALFORMED) from None
    if parsed.host is not None:
        check_named(url, parsed.schema, host)
    return Target(unquote(path) if "%" in path else path, raw_path, parsed.query or b"")


def check_named(url: bytes, scheme: bytes | None, host: bytes | None) -> None:
    """A whole address as the target, as proxies are asked, must name who the Host header names."""
    if scheme is None or scheme.lower() not in SCHEMES:
        raise Refused(MALFORMED)
    named = url.partition(b"://")[2].partition(b"/")[0].partition(b"?")[0]
    if host is None or named.lower() != host.lower():
        raise Refused(OTHER_HOST)
