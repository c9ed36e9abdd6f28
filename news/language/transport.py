"""One request to an endpoint, bounded in time and size, and none while the endpoint does not answer."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import msgspec

from core.http import HttpFailed, bounded, open_client, quoted, request, tls

from .endpoint import Endpoint, LanguageFailed

MAX_BYTES = 1_000_000
FAILURES_THAT_OPEN = 3
FIRST_WAIT_S = 30.0
LONGEST_WAIT_S = 900.0


async def ask(
    method: str, url: str, headers: dict[str, str], *, body: dict[str, Any] | None = None, ends: float
) -> tuple[httpx2.Response, bytes]:
    """Until a moment of the loop's clock."""
    # Reading the certificates takes milliseconds that belong to the ticks on the event loop.
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
    # Only the request is at fault, or only this moment; anything else among them would come again.
    is_lasting = 300 <= status < 500 and status not in (400, 408, 413, 422)
    why = f"the endpoint answered {status}{explanation(endpoint, body)}"
    return LanguageFailed(why, wait_s=retry_after(response), is_lasting=is_lasting)


def explanation(endpoint: Endpoint, body: bytes) -> str:
    """What an error's body says; both protocols say it in the same place."""
    try:
        text = msgspec.json.decode(body)["error"]["message"]
    except (ValueError, RecursionError, KeyError, TypeError, IndexError):
        return ""
    return quoted(text, endpoint.key)


def retry_after(response: httpx2.Response) -> float:
    text = response.headers.get("Retry-After", "")
    # Where it is a date, the breaker's own wait does.
    return min(float(text), LONGEST_WAIT_S) if text.isascii() and text.isdigit() else 0.0


class Breaker:
    """Closed while all is well; open for a while after faults; then one may try."""

    def __init__(self) -> None:
        self._failures = 0
        self._wait_s = FIRST_WAIT_S
        self._open_until: float | None = None

    @property
    def is_closed(self) -> bool:
        return self._open_until is None

    def wait_s(self, now: float) -> float:
        """Until one may try."""
        return 0.0 if self._open_until is None else max(0.0, self._open_until - now)

    def admit(self, now: float) -> bool:
        if self._open_until is None:
            return True
        if now < self._open_until:
            return False
        # Who comes next waits for what becomes of this one, which may never be heard of again.
        self._open_until = now + self._wait_s
        return True

    def succeed(self) -> None:
        self._failures = 0
        self._wait_s = FIRST_WAIT_S
        self._open_until = None

    def fail(self, now: float, *, wait_s: float = 0.0, is_lasting: bool = False) -> None:
        """After a few in a row, after one that asks for patience, and after one that would come again."""
        self._failures += 1
        if self._failures < FAILURES_THAT_OPEN and not wait_s and not is_lasting and self.is_closed:
            return
        wait_s = min(wait_s or self._wait_s, LONGEST_WAIT_S)
        self._open_until = now + wait_s
        self._wait_s = min(self._wait_s * 2, LONGEST_WAIT_S)
