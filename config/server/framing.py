"""The headers that decide where a request ends: one reading of each, or none."""

from __future__ import annotations

from .bodies import MOST_DIGITS
from .refusals import MALFORMED, OTHER_CODING, Refused

Noted = dict[bytes, list[bytes]]
KEY, VERSION = b"sec-websocket-key", b"sec-websocket-version"
FRAMING = frozenset((b"host", b"content-length", b"expect", b"transfer-encoding", b"upgrade", KEY, VERSION))


def read_size(noted: Noted, version: str) -> int | None:
    """Of the body; None where it comes in chunks."""
    codings, lengths = noted.get(b"transfer-encoding"), noted.get(b"content-length")
    if codings is not None:
        if lengths or version == "1.0" or [coding.strip().lower() for coding in codings] != [b"chunked"]:
            raise Refused(OTHER_CODING)
        return None
    if lengths is None:
        return 0
    if len(lengths) > 1 or not lengths[0].isdigit() or len(lengths[0]) > MOST_DIGITS:
        raise Refused(MALFORMED)
    return int(lengths[0])
