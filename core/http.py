"""Bodies of what other servers answer, as they came over the wire.

The HTTP client unpacks whatever `Content-Encoding` names, layer by layer and on the event loop: a few
kilobytes of gzip in gzip are hours of work there, and no byte need ever come out for a limit to count."""

from __future__ import annotations

import asyncio
from collections.abc import Container

import httpx2

PLAIN = frozenset(("",))
CODINGS = frozenset(("gzip", "x-gzip", "deflate", "br", "zstd", "compress", "x-compress", "dcb", "dcz"))
LONGEST_SAID = 40


class BodyRefused(Exception):
    """The body is not read to its end; the sentence says why."""


async def read_raw(response: httpx2.Response, most: int, *, encodings: Container[str] = PLAIN) -> bytes:
    """Still packed, where that is among the `encodings`."""
    found = encoding(response)
    if found not in encodings:
        raise BodyRefused(f"the answer is packed in a way nobody asked for ({found[:LONGEST_SAID]})")
    body = bytearray()
    async for piece in response.aiter_raw():
        body += piece
        if len(body) > most:
            raise BodyRefused(f"the answer has more than {most:,} bytes")
        # What was received at once is given out at once, chunk by chunk, and a chunk may be of one byte.
        await asyncio.sleep(0)
    return bytes(body)


def encoding(response: httpx2.Response) -> str:
    """What has to be undone. Some servers name there what is no coding, such as UTF-8."""
    value: str = response.headers.get("Content-Encoding", "")
    named = [part for part in value.lower().replace(" ", "").split(",") if part in CODINGS]
    return ", ".join(named)
