"""One pacing for all requests of a client: they wait for room in the account's window, instead of failing."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import httpx

from .answers import LONGEST_WAIT_S

LEFT = re.compile(r";\s*r=(\d{1,9})\s*;\s*t=(\d{1,9})\b")


class Pacing:
    """How much room there is, by what the answers say. It does no I/O. The service's clock is never compared
    with this machine's: `t` counts from the answer."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._is_limited: bool | None = None
        """Not known before the first answer."""
        self._room = self._begun = self._in_flight = 0
        self._ready_at = 0.0

    def wait_s(self) -> float | None:
        """How long the next request has to wait, or None if only an answer to another can tell."""
        if self._is_limited is False or self._room > 0:
            return 0.0
        return None if self._in_flight else max(0.0, self._ready_at - self._clock())

    def begin(self) -> int | None:
        """A request is sent. Its number if it is alone: then its answer counts all before it."""
        self._room = max(0, self._room - 1)
        self._begun += 1
        self._in_flight += 1
        return self._begun if self._in_flight == 1 else None

    def end(self, number: int | None, headers: Mapping[str, str] | None) -> None:
        """It was answered, or failed without an answer (None)."""
        self._in_flight -= 1
        found = None if headers is None else LEFT.search(headers.get("RateLimit", ""))
        if found is not None:
            self._learn(number, int(found[1]), min(float(found[2]), LONGEST_WAIT_S))
        elif not self._is_limited:
            self._is_limited = False
        elif headers is None:
            self._room += 1

    def _learn(self, number: int | None, left: int, wait_s: float) -> None:
        if number is None:
            # It may count neither those on their way nor, if it is late, those that were answered before it.
            room = left - self._in_flight
            self._room = min(self._room, max(0, room)) if self._is_limited else max(0, room)
        else:
            self._room = max(0, left - (self._begun - number))
        self._is_limited = True
        if not left:
            self._ready_at = max(self._ready_at, self._clock() + wait_s)


class PacedClient(httpx.Client):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._pacing, self._lock = Pacing(), threading.Lock()
        # Only the first in the line looks for room.
        self._line, self._ended = threading.Lock(), threading.Event()

    def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        number = self._wait_for_room()
        headers = None
        try:
            answer = super().send(request, **options)
            headers = answer.headers
        finally:
            with self._lock:
                self._pacing.end(number, headers)
            self._ended.set()
        return answer

    def _wait_for_room(self) -> int | None:
        with self._line:
            while True:
                self._ended.clear()
                with self._lock:
                    wait_s = self._pacing.wait_s()
                if wait_s is not None:
                    break
                self._ended.wait()
            if wait_s:
                time.sleep(wait_s)
            with self._lock:
                return self._pacing.begin()


class AsyncPacedClient(httpx.AsyncClient):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._pacing = Pacing()
        self._line, self._ended = asyncio.Lock(), asyncio.Event()

    async def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        number = await self._wait_for_room()
        headers = None
        try:
            answer = await super().send(request, **options)
            headers = answer.headers
        finally:
            self._pacing.end(number, headers)
            self._ended.set()
        return answer

    async def _wait_for_room(self) -> int | None:
        async with self._line:
            while (wait_s := self._pacing.wait_s()) is None:
                self._ended.clear()
                await self._ended.wait()
            if wait_s:
                await asyncio.sleep(wait_s)
            return self._pacing.begin()
