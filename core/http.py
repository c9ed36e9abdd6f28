"""Requests to other servers: bounded in time and in size, with one exception for whatever goes wrong.

The HTTP client unpacks whatever `Content-Encoding` names, layer by layer and on the event loop: a few
kilobytes of gzip in gzip are hours of work there, and no byte need ever come out for a limit to count."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Container, Mapping
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

import httpx2

PLAIN = frozenset(("",))
CODINGS = frozenset(("gzip", "x-gzip", "deflate", "br", "zstd", "compress", "x-compress", "dcb", "dcz"))
LONGEST_SAID = 40
LONGEST_QUOTED = 200


class HttpFailed(Exception):
    """There is no answer; the sentence says why."""

    def __init__(self, why: str, status: int | None = None) -> None:
        super().__init__(why)
        self.status = status
        """What HTTP said, if it answered."""


class BodyRefused(HttpFailed):
    """The body is not read to its end."""


@cache
def tls(*, trust_env: bool) -> ssl.SSLContext:
    """Made once: reading the certificates takes 30 ms, in which no tick is heard unless a thread does it."""
    return httpx2.create_ssl_context(trust_env=trust_env)


def open_client(
    *, headers: Mapping[str, str] | None = None, trust_env: bool = True, **options: Any
) -> httpx2.AsyncClient:
    """Follows no redirects: what the headers hold is for one address alone."""
    return httpx2.AsyncClient(
        headers={"Accept-Encoding": "identity", **(headers or {})},
        verify=tls(trust_env=trust_env),
        trust_env=trust_env,
        **options,
    )


@asynccontextmanager
async def bounded(seconds: float, late: str = "") -> AsyncIterator[None]:
    """All in all: the client's own limits start anew with each byte."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise HttpFailed(late or f"no whole answer within {seconds:g} s") from None
    except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
        raise HttpFailed(f"the connection failed ({type(error).__name__})") from None


async def request(
    client: httpx2.AsyncClient, method: str, url: str, *, most: int, **options: Any
) -> tuple[httpx2.Response, bytes]:
    async with client.stream(method, url, **options) as response:
        return response, await read_raw(response, most)


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


def quoted(text: object, secret: str) -> str:
    """What an error's body says, for the end of a sentence, on one short line. It goes into the log, and
    nobody knows what an error repeats of what it was sent."""
    if not isinstance(text, str):
        return ""
    text = text.replace(secret, "***") if secret else text
    return f": {' '.join(text.split())[:LONGEST_QUOTED].rstrip('.')}"
