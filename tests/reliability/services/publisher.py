"""A source of ticks that does as docs/ingest.md says: after a fault it sends the last seconds again."""

from __future__ import annotations

import random
import time
from typing import Any

import httpx

from core.times import MINUTE_MS
from market.prices.records import Tick
from tests.patience import wait_until

from .processes import http

BATCH = 10
# Some hundreds of batches in a second, so that a kill meets each stage of the work.
PACE_S = 0.003
# As many as some seconds have.
AGAIN = 2_000
# Their minutes are over, so each closes as soon as the next one's tick comes: nobody waits for candles.
BEGINS_BEFORE_MS = 5 * 24 * 60 * MINUTE_MS
GAPS_MS = (0, 0, 1, 40, 900, 2_500, 7_000, 19_000)


class Unanswered(Exception):
    """Whether the ticks were taken is not known."""


class Publisher:
    def __init__(self, key: str, symbol: str, seed: int) -> None:
        self._symbol = symbol
        self._random = random.Random(seed)  # noqa: S311 - prices
        self._headers = {"X-Ingest-Key": key}
        self._points, self._number = 108_000, 0
        self.at_ms = (time.time_ns() // 1_000_000 - BEGINS_BEFORE_MS) // MINUTE_MS * MINUTE_MS
        self.ticks: list[Tick] = []
        """All that there ever were, in order."""
        self.answered_at: list[float] = []
        """When each was last acknowledged; those beyond the end were not."""
        self.forgotten = 0
        """Acknowledged ones that were taken as new when they came again."""
        self._is_in_doubt = False

    def send(self, url: str, count: int = BATCH) -> None:
        """Some new ticks, after those that a fault made doubtful."""
        if self._is_in_doubt:
            self._send_again(url)
        self.ticks += [self._next() for _ in range(count)]
        refused = self._post(url, len(self.answered_at))
        assert set(refused.values()) <= {"too_late"}, set(refused.values())
        self._note(len(self.answered_at), refused)

    def send_until_it_breaks(self, url: str) -> None:
        while True:
            try:
                self.send(url)
            except Unanswered:
                return
            time.sleep(PACE_S)

    def recover(self, url: str) -> float:
        """Send until somebody answers again; returns how many seconds that took."""
        return wait_until(lambda: self._is_taken_again(url))

    def _is_taken_again(self, url: str) -> bool:
        try:
            self._send_again(url)
        except Unanswered:
            return False
        return True

    def _send_again(self, url: str) -> None:
        first = max(0, len(self.answered_at) - AGAIN)
        refused = self._post(url, first)
        assert set(refused.values()) <= {"duplicate", "too_late"}, set(refused.values())
        self.forgotten += sum(index not in refused for index in range(first, len(self.answered_at)))
        self._note(first, refused)

    def _post(self, url: str, first: int) -> dict[int, str]:
        """Why some ticks from the first on were refused."""
        self._is_in_doubt = True
        refused: dict[int, str] = {}
        for start in range(first, len(self.ticks), 1_000):
            body = [as_sent(tick) for tick in self.ticks[start : start + 1_000]]
            try:
                response = http.post(f"{url}/ingest/ticks", json=body, headers=self._headers)
            except httpx.TransportError as error:
                raise Unanswered from error
            if response.status_code == 503:
                raise Unanswered
            assert response.status_code == 200, response.text
            refused |= {start + tick["index"]: tick["code"] for tick in response.json()["rejected"]}
        return refused

    def _note(self, first: int, refused: dict[int, str]) -> None:
        """A minute that was interrupted for long is closed by the clock: the rest of it never happened."""
        self._is_in_doubt = False
        late = {index for index, code in refused.items() if code == "too_late"}
        assert all(index >= len(self.answered_at) for index in late), "taken before, and refused now"
        self.ticks = [tick for index, tick in enumerate(self.ticks) if index not in late]
        self.answered_at[first:] = [time.monotonic()] * (len(self.ticks) - first)

    def _next(self) -> Tick:
        draw = self._random
        self._number += 1
        pause_ms = draw.randrange(45 * MINUTE_MS) if draw.random() < 0.0005 else 0
        self.at_ms += draw.choice(GAPS_MS) + pause_ms
        self._points += draw.randint(-9, 9)
        bid, ask = self._points / 1e5, (self._points + draw.randint(0, 20)) / 1e5
        # A tick counts as one, whatever it says, where the volume is that of ticks.
        return Tick(self._symbol, bid, ask, self.at_ms, 1.0, source_seq=self._number)


def as_sent(tick: Tick) -> dict[str, Any]:
    return {
        "symbol": tick.symbol,
        "bid": tick.bid,
        "ask": tick.ask,
        "time": tick.time_ms,
        "seq": tick.source_seq,
    }
