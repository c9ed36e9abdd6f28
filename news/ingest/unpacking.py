"""A packed feed becomes what it was. Run in a process apart (child.py): what gzip hides may be much work."""

from __future__ import annotations

import gzip
import io
import zlib

from .parsing import NoFeed

MAX_BYTES = 2_000_000


def unpack(body: bytes) -> bytes:
    try:
        unpacked = gzip.GzipFile(fileobj=io.BytesIO(body)).read(MAX_BYTES + 1)
    except EOFError:
        raise NoFeed("the packed answer breaks off") from None
    except (gzip.BadGzipFile, zlib.error):
        raise NoFeed("the answer says that it is gzip, and is not") from None
    if len(unpacked) > MAX_BYTES:
        raise NoFeed(f"the feed has more than {MAX_BYTES:,} bytes")
    return unpacked
