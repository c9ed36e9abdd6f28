"""Requests to an endpoint, bounded in time and size, and paused while the endpoint fails."""

import asyncio
from typing import Any

import httpx2
import msgspec

from core.http import HttpFailed, bounded, open_client, quoted, request, retry_after_s, tls

from .endpoint import Endpoint, LanguageFailed

MAX_BYTES = 1_000_000
FAILURES_THAT_OPEN = 3
FIRST_WAIT_S = 30.0
LONGEST_WAIT_S = 900.0


async def ask(
    method: str, url: str, headers: dict[str, str], *, body: dict[str, Any] | None = None, ends: float
) -> tuple[httpx2.Response, bytes]:
    """`ends` is a time on the event loop's clock."""
    # Reading the certificates would block the event loop, and the ticks on it, for milliseconds.
    await asyncio.to_thread(tls, trust_env=True)
    client = open_client(headers={**headers, "Content-Type": "application/json"}, timeout=None)
    content = None if body is None else msgspec.json.encode(body)
    left_s = ends - asyncio.get_running_loop().time()
    try:
        async with bounded(left_s, "there was no whole answer in time"), client:
            return await request(client, method, url, most=MAX_BYTES, content=content)
    except HttpFailed as error:
        raise LanguageFailed(str(error)) from None


def refusal(endpoint: Endpoint, response: httpx2.Response, body: bytes) -> LanguageFailed:
    status = response.status_code
    # The excluded codes blame this request or this moment; the others would come back for the next request.
    is_lasting = 300 <= status < 500 and status not in (400, 408, 413, 422)
    why = f"the endpoint answered {status}{explanation(endpoint, body)}"
    return LanguageFailed(why, wait_s=min(retry_after_s(response), LONGEST_WAIT_S), is_lasting=is_lasting)


def explanation(endpoint: Endpoint, body: bytes) -> str:
    """The message in the body of an error, which is in the same place in both protocols."""
    try:
        text = msgspec.json.decode(body)["error"]["message"]
    except (ValueError, RecursionError, KeyError, TypeError, IndexError):
        return ""
    return quoted(text, endpoint.key)


class Breaker:
    """Closed while all is well, open for a while after faults; after that one request may try."""

    def __init__(self) -> None:
        self._failures = 0
        self._wait_s = FIRST_WAIT_S
        self._open_until: float | None = None

    @property
    def is_closed(self) -> bool:
        return self._open_until is None

    def admit(self, now: float) -> float:
        """Seconds until a request may try; 0 if this one may."""
        if self._open_until is None:
            return 0.0
        if now < self._open_until:
            return self._open_until - now
        # Later requests wait for the outcome of this one, but not for ever: it may never report back.
        self._open_until = now + self._wait_s
        return 0.0

    def succeed(self) -> None:
        self._failures = 0
        self._wait_s = FIRST_WAIT_S
        self._open_until = None

    def fail(self, now: float, *, wait_s: float = 0.0, is_lasting: bool = False) -> None:
        """Opens after a few faults in a row, or at once if the fault is lasting or asks for a wait."""
        self._failures += 1
        if self._failures < FAILURES_THAT_OPEN and not wait_s and not is_lasting and self.is_closed:
            return
        wait_s = min(wait_s or self._wait_s, LONGEST_WAIT_S)
        self._open_until = now + wait_s
        self._wait_s = min(self._wait_s * 2, LONGEST_WAIT_S)
