"""A packed feed becomes what it was. Run in a process apart (child.py): what gzip hides may be much work."""

from __future__ import annotations

import zlib

from .parsing import NoFeed

MAX_BYTES = 2_000_000
GZIP, MAGIC = zlib.MAX_WBITS | 16, b"\x1f\x8b"


def unpack(body: bytes) -> bytes:
    """Member by member; what stands behind the last one is passed over, as browsers do."""
    unpacked = b""
    try:
        while True:
            member = zlib.decompressobj(GZIP)
            unpacked += member.decompress(body, MAX_BYTES + 1 - len(unpacked))
            if len(unpacked) > MAX_BYTES:
                raise NoFeed(f"the feed has more than {MAX_BYTES:,} bytes")
            if not member.eof:
                raise NoFeed("the packed answer breaks off")
            body = member.unused_data
            if not body.startswith(MAGIC):
                return unpacked
    except zlib.error:
        raise NoFeed("the answer says that it is gzip, and is not") from None
