"""Requests to other servers: bounded in time and in size, with one exception for whatever goes wrong.

Bodies are read as they came over the wire. The HTTP client would unpack whatever `Content-Encoding` names,
layer by layer and on the event loop: a few kilobytes of gzip in gzip are hours of work, and not one byte
need come out of them that a limit could count."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Container, Mapping
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

import httpx2

PLAIN = frozenset(("",))
CODINGS = frozenset(("gzip", "x-gzip", "deflate", "br", "zstd", "compress", "x-compress", "dcb", "dcz"))
LONGEST_CODING, LONGEST_QUOTED = 40, 200


class HttpFailed(Exception):
    """Why there is no answer, as a sentence."""

    def __init__(self, why: str, status: int | None = None) -> None:
        super().__init__(why)
        self.status = status
        """The HTTP status, if there was an answer."""


class BodyRefused(HttpFailed):
    """The body is too large or packed, so it is not read to its end."""


@cache
def tls(*, trust_env: bool) -> ssl.SSLContext:
    """Made once: reading the certificates takes 30 ms. A thread does it where the loop must not wait."""
    return httpx2.create_ssl_context(trust_env=trust_env)


def open_client(
    *, headers: Mapping[str, str] | None = None, trust_env: bool = True, **options: Any
) -> httpx2.AsyncClient:
    """Follows no redirects, because the headers may hold a key that is meant for one address."""
    return httpx2.AsyncClient(
        headers={"Accept-Encoding": "identity", **(headers or {})},
        verify=tls(trust_env=trust_env),
        trust_env=trust_env,
        **options,
    )


@asynccontextmanager
async def bounded(seconds: float, late: str = "") -> AsyncIterator[None]:
    """A limit for the whole request: the client's own timeouts start again with each byte."""
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
    """The body stays packed, where its encoding is among those that are accepted."""
    found = encoding(response)
    if found not in encodings:
        raise BodyRefused(f"the answer is packed in a way that was not asked for ({found[:LONGEST_CODING]})")
    body = bytearray()
    async for piece in response.aiter_raw():
        body += piece
        if len(body) > most:
            raise BodyRefused(f"the answer has more than {most:,} bytes")
        # Chunks that were received together come without a pause, and each may be a single byte.
        await asyncio.sleep(0)
    return bytes(body)


def encoding(response: httpx2.Response) -> str:
    """The codings that have to be undone. Some servers name what is none, such as UTF-8."""
    value: str = response.headers.get("Content-Encoding", "")
    named = [part for part in value.lower().replace(" ", "").split(",") if part in CODINGS]
    return ", ".join(named)


def retry_after_s(response: httpx2.Response) -> int:
    """0 for a date, which is rare, and for what no clock has."""
    text: str = response.headers.get("Retry-After", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def quoted(text: object, secret: str) -> str:
    """The body of an error as one short line, for the end of a sentence. The secret is masked, because the
    line goes into the log and an error may repeat the request."""
    if not isinstance(text, str):
        return ""
    text = text.replace(secret, "***") if secret else text
    return f": {' '.join(text.split())[:LONGEST_QUOTED].rstrip('.')}"
