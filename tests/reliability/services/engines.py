"""A source of ticks that does as docs/ingest.md says: after a fault it sends the last seconds again. What the
database of a running engine holds, and what it must hold."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import httpx
from django.db import connection, transaction

from core.times import MINUTE_MS
from market.models import Candle, EngineState, FormingMinute, LastQuote
from market.prices.candles import COARSER, PriceBar
from market.prices.records import Tick
from market.push.keys import issue_ingest_key
from tests.factories import make_instrument
from tests.market.ticking import Rows, expected
from tests.patience import wait_until

from .processes import Installation, Process, http

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


PRICES = ("open", "high", "low", "close", "volume", "ask_high", "ask_low")


# For servers of tests that send ticks of the past: at its own time the clock would close their minutes as
# soon as a slow machine makes a pause between two batches.
NEVER_CLOSING = {"CLOSE_GRACE_MS": "3600000"}


class Stored(NamedTuple):
    """What another engine would go on from, as of one moment."""

    rows: Rows
    forming: PriceBar | None
    seq: int
    state: EngineState

    def minutes(self) -> Rows:
        """With the one that forms: it is that as long as no later one was closed."""
        minutes = {key: candle for key, candle in self.rows.items() if key[0] == "1m"}
        if self.forming is not None and self.forming.opened_ms > max((at for _, at in minutes), default=0):
            minutes["1m", self.forming.opened_ms] = self.forming
        return minutes


def make_publisher(installation: Installation, symbol: str, seed: int) -> Publisher:
    """With an instrument of its own, priced by whoever pushes."""
    with installation.orm():
        make_instrument(symbol, source="push")
        return Publisher(issue_ingest_key("desk", symbol, by="test")[1], symbol, seed)


def stored(installation: Installation, symbol: str) -> Stored:
    with installation.orm(only_reads=True), transaction.atomic():
        if connection.vendor == "postgresql":
            connection.cursor().execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        found = Candle.objects.filter(instrument__symbol=symbol)
        rows = {(row.timeframe, opened_ms(row)): candle_of(row) for row in found}
        forming = FormingMinute.objects.filter(instrument__symbol=symbol).first()
        quote = LastQuote.objects.filter(instrument__symbol=symbol).first()
        state = EngineState.objects.first() or EngineState()
        minute = candle_of(forming) if forming else None
        return Stored(rows, minute, quote.seq if quote else 0, state)


def opened_ms(row: Candle | FormingMinute) -> int:
    return round(row.opened_at.timestamp() * 1000)


def candle_of(row: Candle | FormingMinute) -> PriceBar:
    return PriceBar(opened_ms(row), *(float(getattr(row, name)) for name in PRICES))  # type: ignore[arg-type]


def differences(found: Stored, ticks: Sequence[Tick]) -> list[str]:
    """Between what is stored and the candles of as many ticks as it says it has seen."""
    wanted = expected(list(ticks[: found.seq]))
    minutes = {key: candle for key, candle in wanted.items() if key[0] == "1m"}
    have = found.minutes()
    # The clock may have closed the last of each while minutes of it were still being sent.
    last = {name: max((at for each, at in wanted if each == name), default=0) for name in COARSER}
    wanted, have = (
        minutes | {key: candle for key, candle in rows.items() if key[0] != "1m" and key[1] < last[key[0]]}
        for minutes, rows in ((minutes, wanted), (found.minutes(), found.rows))
    )
    return [
        f"{timeframe} {at}: {have.get((timeframe, at))} and not {wanted.get((timeframe, at))}"
        for timeframe, at in sorted(have.keys() | wanted.keys())
        if have.get((timeframe, at)) != wanted.get((timeframe, at))
    ]


def settle(installation: Installation, symbol: str, ticks: Sequence[Tick]) -> None:
    """Wait until everything is written: each candle is closed then, as the ticks are of the past."""
    wanted = expected(list(ticks))
    wait_until(lambda: stored(installation, symbol).rows == wanted)


def written(installation: Installation, symbol: str, ticks: Sequence[Tick]) -> None:
    """Wait until all that there are have been, as far as they go: the last candles may still form."""
    wait_until(lambda: holds(stored(installation, symbol), ticks))


def holds(found: Stored, ticks: Sequence[Tick]) -> bool:
    return found.seq == len(ticks) and differences(found, ticks) == []


def send_until_killed(publisher: Publisher, server: Process, draw: random.Random) -> None:
    """Some hundred ticks at least, and then kill -9 amid the work on others."""
    for _ in range(draw.randint(20, 60)):
        publisher.send(server.url)
    with killed_after(draw.uniform(0, 0.1), server.pid):
        publisher.send_until_it_breaks(server.url)


@contextmanager
def killed_after(seconds: float, pid: int) -> Iterator[None]:
    """kill -9 while something else goes on."""
    timer = threading.Timer(seconds, os.kill, (pid, signal.SIGKILL))
    timer.start()
    yield
    timer.join()
