"""What the database of a running engine holds, and what it must hold."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from django.db import connection, transaction

from market.models import Candle, EngineState, FormingMinute, LastQuote
from market.prices.candles import COARSER, PriceBar
from market.prices.records import Tick
from market.push.keys import issue_ingest_key
from tests.factories import make_instrument
from tests.market.ticking import Rows, expected
from tests.patience import wait_until

from .processes import Installation, Process
from .publisher import Publisher

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
