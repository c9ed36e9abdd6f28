"""A recorded hour, replayed and imported: both make the candles that a dozen plain lines reckon."""

from __future__ import annotations

import random
from collections import Counter
from decimal import Decimal
from functools import cache
from pathlib import Path

import pytest

from core.times import MINUTE_MS
from instruments.catalogue import catalogue
from market.engine.engine import CLOSE_GRACE_MS, Engine
from market.engine.feeds.replay import ReplayFeed
from market.engine.feeds.supervisor import EngineReceiver
from market.engine.files.format import encode
from market.models import Candle
from market.prices.quotes import Prices
from market.prices.records import Tick
from tests.factories import make_instrument
from tests.market.importing.importing import import_files
from tests.market.ticking import HOUR_MS, NOON_MS, ms

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock")]

# Across midnight, so that it has a part in two days.
SINCE_MS = ms("2026-11-17T23:30")
SPANS = {"1m": 1, "5m": 5, "15m": 15, "1h": 60, "4h": 240, "1d": 1440}
Line = tuple[int, str, str]
Bars = dict[tuple[str, int], tuple[Decimal, ...]]
"""Open, high, low, close and volume by timeframe and opening time."""


@cache
def hour() -> tuple[list[Line], Counter[str]]:
    """Bursts and pauses; now and then a source that stutters. And how often it did."""
    chance, at_ms, points = random.Random(20261117), SINCE_MS, 108_410
    lines, faults = list[Line](), Counter[str]()
    while True:
        at_ms += chance.randrange(60) if chance.random() < 0.9 else chance.randrange(2_200)
        if at_ms >= SINCE_MS + HOUR_MS:
            return lines, faults
        points += chance.choice((-3, -1, -1, 1, 1, 3))
        line = at_ms, f"1.{points - 100_000:05}", f"1.{points - 100_000 + chance.randrange(5):05}"
        fault = chance.choice(("crossed", "duplicate", "older_than_last")) if chance.random() < 0.01 else ""
        wrong = {
            "crossed": (at_ms, "1.09000", "1.08999"),
            "duplicate": line,
            "older_than_last": (at_ms - 1_000, "1.20000", "1.20002"),
        }
        lines += [line, wrong[fault]] if fault else [line]
        faults.update([fault] if fault else [])


@cache
def reckoned() -> Bars:
    bars, last = Bars(), (0, "", "")
    for line in hour()[0]:
        at_ms, bid, ask = line[0], Decimal(line[1]), Decimal(line[2])
        if line == last or ask < bid or at_ms < last[0]:
            continue
        last = line
        for name, minutes in SPANS.items():
            opened_ms = at_ms - at_ms % (minutes * 60_000)
            first, high, low, _, count = bars.get((name, opened_ms), (bid, bid, bid, bid, Decimal(0)))
            bars[name, opened_ms] = first, max(high, bid), min(low, bid), bid, count + 1
    return {key: bar for key, bar in bars.items() if key[1] + SPANS[key[0]] * 60_000 <= NOON_MS}


@pytest.fixture(params=["jsonl", "csv"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """As our own recording, and as CSV."""
    path = tmp_path / f"EURUSD.{request.param}"
    if request.param == "csv":
        path.write_text(
            "timestamp,bid,ask\n" + "".join(f"{','.join(map(str, line))}\n" for line in hour()[0])
        )
    else:
        path.write_bytes(encode([Tick("EURUSD", float(bid), float(ask), at) for at, bid, ask in hour()[0]]))
    make_instrument("EURUSD", source="replay")
    return path


async def replayed(directory: Path) -> Engine:
    engine = Engine(Prices("bid"))
    receiver = EngineReceiver(engine, "replay", ["EURUSD"], engine.records.clear)
    await ReplayFeed(directory, catalogue.active(), speed=0).run(receiver)
    # What comes as late as this is let be until no more comes.
    engine.keep_time(NOON_MS + CLOSE_GRACE_MS)
    return engine


def decimals(*values: float) -> tuple[Decimal, ...]:
    return tuple(Decimal(str(value)) for value in values)


def test_hour_is_worth_its_name() -> None:
    lines, faults = hour()

    assert len(lines) >= 20_000
    assert min(faults.values()) >= 20
    assert sum(timeframe == "1m" for timeframe, _ in reckoned()) == HOUR_MS // MINUTE_MS


async def test_replayed_hour_makes_the_reckoned_candles(path: Path) -> None:
    engine = await replayed(path.parent)

    assert {
        (timeframe, bar.opened_ms): decimals(bar.open, bar.high, bar.low, bar.close, bar.volume)
        for _, timeframe, bar, _ in engine.rows
    } == reckoned()
    refused = Counter(engine.feed_state("replay").refused)
    # Older than the last, and of a minute that this one's tick has closed.
    refused["older_than_last"] += refused.pop("too_late")
    assert refused == hour()[1]


def test_imported_hour_makes_the_reckoned_candles(path: Path) -> None:
    tally = import_files(str(path))

    assert {
        (row.timeframe, round(row.opened_at.timestamp() * 1000)): (
            *(row.open, row.high, row.low, row.close, row.volume),
        )
        for row in Candle.objects.all()
    } == reckoned()
    assert tally.faults == hour()[1]
