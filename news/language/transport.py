"""One request to an endpoint, bounded in time and size."""

from __future__ import annotations

import asyncio
import ssl
from functools import cache
from typing import Any

import httpx2
import msgspec

from accounts.raw_bodies import BodyRefused, read_raw

from .breaker import LONGEST_WAIT_S
from .endpoint import Endpoint
from .problem import LanguageFailed

MAX_BYTES = 1_000_000


async def request(
    method: str, url: str, headers: dict[str, str], *, body: dict[str, Any] | None = None, ends: float
) -> tuple[httpx2.Response, bytes]:
    """Until a moment of the loop's clock. Redirects are not followed: the key is for this address alone."""
    # Reading the certificates takes milliseconds that belong to the ticks on the event loop.
    certificates = await asyncio.to_thread(tls)
    headers = {**headers, "Accept-Encoding": "identity", "Content-Type": "application/json"}
    content = None if body is None else msgspec.json.encode(body)
    try:
        async with (
            asyncio.timeout_at(ends),
            httpx2.AsyncClient(verify=certificates, timeout=None) as client,
            client.stream(method, url, headers=headers, content=content) as response,
        ):
            return response, await read_raw(response, MAX_BYTES)
    except TimeoutError:
        raise LanguageFailed("there was no whole answer in time") from None
    except BodyRefused as error:
        raise LanguageFailed(str(error)) from None
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise LanguageFailed(f"the connection failed ({type(error).__name__})") from None


@cache
def tls() -> ssl.SSLContext:
    return httpx2.create_ssl_context()


def refusal(endpoint: Endpoint, response: httpx2.Response, body: bytes) -> LanguageFailed:
    status = response.status_code
    # Only the request is at fault, or only this moment; anything else among them would come again.
    is_lasting = 300 <= status < 500 and status not in (400, 408, 413, 422)
    why = f"the endpoint answered {status}{said(endpoint, body)}"
    return LanguageFailed(why, wait_s=retry_after(response), is_lasting=is_lasting)


def said(endpoint: Endpoint, body: bytes) -> str:
    """What an error's body says, on one short line; both protocols say it in the same place."""
    try:
        text = msgspec.json.decode(body)["error"]["message"]
    except (ValueError, RecursionError, KeyError, TypeError, IndexError):
        return ""
    if not isinstance(text, str):
        return ""
    # It goes into the log, and nobody knows what an error repeats of what it was sent.
    text = text.replace(endpoint.key, "***") if endpoint.key else text
    return f": {' '.join(text.split())[:200].rstrip('.')}"


def retry_after(response: httpx2.Response) -> float:
    text = response.headers.get("Retry-After", "")
    # Where it is a date, the breaker's own wait does.
    return min(float(text), LONGEST_WAIT_S) if text.isascii() and text.isdigit() else 0.0
